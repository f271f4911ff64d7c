// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	recentRows  = "recent/"
	lastingRows = "lasting/"
	// endOfRecentRows is the first key after those of recentRows.
	endOfRecentRows = "recent0"

	// maxRowBytes bounds the facts of a row before compression. A single fact that is larger is dropped: it would
	// block all others.
	maxRowBytes = 128 << 10
	// maxUIDBytes bounds the uids in keys. An API server's have 36 bytes.
	maxUIDBytes = 128
)

// line is the stored form of a fact before compression.
type line struct {
	// lasting is the key of a row of its own. Facts without one share rows.
	lasting   string
	namespace string
	text      []byte
}

// encodeLines encodes facts. Those that are too large are left out.
func encodeLines(facts []attribution.Fact) []line {
	lines := make([]line, 0, len(facts))
	for _, fact := range facts {
		// A Fact has nothing that JSON cannot express.
		text, _ := json.Marshal(fact)
		if len(text) > maxRowBytes {
			klog.Background().Info("Dropped a fact that is too large to be stored",
				"resource", fact.Resource, "namespace", fact.Namespace, "name", fact.Name, "bytes", len(text))
			attribution.Evicted(1)
			continue
		}
		lines = append(lines, line{lasting: lastingKey(fact), namespace: fact.Namespace, text: append(text, '\n')})
	}
	return lines
}

// rows combines lines to rows.
func (l *Log) rows(lines []line) []table.Row {
	var rows []table.Row
	var recent bytes.Buffer
	for _, line := range lines {
		if line.lasting != "" {
			rows = append(rows, table.Row{Key: line.lasting, Value: l.deflater.compress(line.text)})
			continue
		}
		if recent.Len()+len(line.text) > maxRowBytes {
			rows = append(rows, l.recentRow(&recent))
		}
		recent.Write(line.text)
	}
	if recent.Len() > 0 {
		rows = append(rows, l.recentRow(&recent))
	}
	return rows
}

// recentRow returns the row of lines, and empties the buffer.
func (l *Log) recentRow(lines *bytes.Buffer) table.Row {
	key := fmt.Sprintf("%s-%s-%x", recentKey(l.clock.Now()), l.replica, l.written.Add(1))
	value := l.deflater.compress(lines.Bytes())
	lines.Reset()
	return table.Row{Key: key, Value: value}
}

// recentKey returns the prefix of the keys of the rows of a time.
func recentKey(at time.Time) string { return fmt.Sprintf("%s%016x", recentRows, uint64(at.UnixNano())) }

// lastingKey returns the key of a lasting fact, which is the same each time that the fact is received, and an empty one for
// other facts. Without the object's uid the end of the object could not be recognized.
func lastingKey(fact attribution.Fact) string {
	if !fact.Lasting || fact.UID == "" || len(fact.UID) > maxUIDBytes {
		return ""
	}
	hash := sha256.Sum256([]byte(string(fact.Signal) + "\x00" + fact.ID))
	return lastingRows + url.PathEscape(string(fact.UID)) + "/" + hex.EncodeToString(hash[:16])
}

// isLasting reports whether a row holds a lasting fact.
func isLasting(row table.Row) bool { return strings.HasPrefix(row.Key, lastingRows) }
