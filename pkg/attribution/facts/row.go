// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/attribution"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

const (
	recentRows  = "recent/"
	lastingRows = "lasting/"
	// endOfRecentRows is the first key after those of recentRows.
	endOfRecentRows = "recent0"

	// maxRowBytes bounds the facts of a row before compression. A fact that is larger by itself is given up: it would
	// keep all others from being written.
	maxRowBytes = 128 << 10
	// maxUIDBytes bounds what goes into a key. An API server's uids have 36.
	maxUIDBytes = 128
)

// rows gives facts their stored form.
func (l *Log) rows(ctx context.Context, facts []attribution.Fact) []storetable.Row {
	var rows []storetable.Row
	var recent bytes.Buffer
	for _, fact := range facts {
		// A Fact has nothing that JSON cannot express.
		line, _ := json.Marshal(fact)
		if len(line) > maxRowBytes {
			klog.FromContext(ctx).Info("A report of who made a change is too large to be kept",
				"resource", fact.Resource, "namespace", fact.Namespace, "name", fact.Name, "bytes", len(line))
			attribution.Evicted(1)
			continue
		}
		line = append(line, '\n')
		if key, ok := lastingKey(fact); ok {
			rows = append(rows, storetable.Row{Key: key, Value: l.deflater.compress(line)})
			continue
		}
		if recent.Len()+len(line) > maxRowBytes {
			rows = append(rows, l.recentRow(&recent))
		}
		recent.Write(line)
	}
	if recent.Len() > 0 {
		rows = append(rows, l.recentRow(&recent))
	}
	return rows
}

// recentRow makes a row of lines, and empties them.
func (l *Log) recentRow(lines *bytes.Buffer) storetable.Row {
	key := fmt.Sprintf("%s-%s-%x", recentKey(l.clock.Now()), l.replica, l.written.Add(1))
	value := l.deflater.compress(lines.Bytes())
	lines.Reset()
	return storetable.Row{Key: key, Value: value}
}

// recentKey is what the keys of the rows of a time begin with.
func recentKey(at time.Time) string { return fmt.Sprintf("%s%016x", recentRows, uint64(at.UnixNano())) }

// lastingKey is the key of a fact that is kept for longer, the same whenever it is told. Without the object's uid nobody
// could say when it is over.
func lastingKey(fact attribution.Fact) (string, bool) {
	if !fact.Lasting || fact.UID == "" || len(fact.UID) > maxUIDBytes {
		return "", false
	}
	hash := sha256.Sum256([]byte(string(fact.Signal) + "\x00" + fact.ID))
	return lastingRows + url.PathEscape(string(fact.UID)) + "/" + hex.EncodeToString(hash[:16]), true
}

// isLasting says of which kind a row is.
func isLasting(row storetable.Row) bool { return strings.HasPrefix(row.Key, lastingRows) }
