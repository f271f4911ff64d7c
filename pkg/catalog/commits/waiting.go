// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commits

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/store/commitindex"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// TableName is that of the table of the work store that waiting records are kept in.
const TableName = "catalog-commits"

// MaxWaiting is how many records of a source namespace wait for commits, the newest.
const MaxWaiting = 1000

// Waiting keeps which records commits may still be named in.
//
// Its rows are {namespace}/{seconds}/{catalog's namespace}/{record}, with the time at which the change was seen in 16
// hexadecimal digits, so that the oldest come first.
type Waiting struct {
	table *storetable.Table
	clock clock.PassiveClock
}

// NewWaiting returns what a table holds.
func NewWaiting(table *storetable.Table, clock clock.PassiveClock) *Waiting {
	return &Waiting{table: table, clock: clock}
}

// Entry is a record that waits.
type Entry struct {
	Record types.NamespacedName
	// Batch tells the record from another one that has taken its name.
	Batch string
	Spans []Span
}

// row is the stored form of an entry.
type row struct {
	Batch string `json:"batch"`
	Spans []Span `json:"spans"`
}

// Expect notes that a record of a source namespace, which is about to be written, tells of spans, and returns them. Spans
// that were noted for it before, by who may have done a part of its work since, begin where they began then.
func (w *Waiting) Expect(ctx context.Context, namespace string, record *v1alpha1.SyncStatus, spans []Span) ([]Span, error) {
	key := fmt.Sprintf("%s/%016x/%s/%s", namespace, max(record.Status.DetectedAt.Unix(), 0), record.Namespace, record.Name)
	before, _, err := w.table.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read which commits a record waits for: %w", err)
	}
	next := row{record.Spec.Batch, united(decoded(before).Spans, spans)}
	if len(next.Spans) == 0 {
		return nil, nil
	}
	// A row has nothing that JSON cannot express.
	value, _ := json.Marshal(next)
	if err := w.table.Put(ctx, storetable.Row{Key: key, Value: value}); err != nil {
		return nil, fmt.Errorf("note which commits a record waits for: %w", err)
	}
	return next.Spans, w.trim(ctx, namespace)
}

// decoded is what a row says; nothing, when it cannot be read.
func decoded(value []byte) (out row) {
	_ = json.Unmarshal(value, &out)
	return out
}

// united lets spans of before begin where they did and end where they do now.
func united(before, now []Span) []Span {
	out := slices.Clone(before)
	for _, span := range now {
		same := func(other Span) bool { return other.Object == span.Object }
		if i := slices.IndexFunc(out, same); i >= 0 {
			out[i].To = span.To
		} else if len(out) < syncstatus.MaxListed {
			out = append(out, span)
		}
	}
	return out
}

// In yields the records of a source namespace that wait, the oldest first.
func (w *Waiting) In(ctx context.Context, namespace string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for stored, err := range w.table.Scan(ctx, namespace+"/") {
			if err != nil {
				yield(Entry{}, fmt.Errorf("read which records wait for commits: %w", err))
				return
			}
			name, since, ok := parse(stored.Key)
			of := decoded(stored.Value)
			if !ok || w.over(since) || len(of.Spans) == 0 {
				continue // It goes when the next record comes.
			}
			if !yield(Entry{Record: name, Batch: of.Batch, Spans: of.Spans}, nil) {
				return
			}
		}
	}
}

// trim lets go of the records of a namespace that wait in vain, or are too many.
func (w *Waiting) trim(ctx context.Context, namespace string) error {
	count, err := w.table.Count(ctx, namespace+"/")
	if err != nil {
		return fmt.Errorf("count the records that wait for commits: %w", err)
	}
	var gone []string
	for stored, err := range w.table.Scan(ctx, namespace+"/") {
		if err != nil {
			return fmt.Errorf("look for records that wait in vain: %w", err)
		}
		if _, since, ok := parse(stored.Key); ok && !w.over(since) && count <= MaxWaiting {
			break
		}
		gone = append(gone, stored.Key)
		count--
	}
	if len(gone) == 0 {
		return nil
	}
	if err := w.table.Delete(ctx, gone...); err != nil {
		return fmt.Errorf("let go of records that wait in vain: %w", err)
	}
	return nil
}

// over says whether nothing is waited for any more.
func (w *Waiting) over(since time.Time) bool { return w.clock.Since(since) > commitindex.MaxAge }

// keyParts is how many parts a key has.
const keyParts = 4

// parse reads the key of a row.
func parse(key string) (record types.NamespacedName, since time.Time, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) != keyParts {
		return record, since, false
	}
	seconds, err := strconv.ParseInt(parts[1], 16, 64)
	return types.NamespacedName{Namespace: parts[2], Name: parts[3]}, time.Unix(seconds, 0), err == nil
}
