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
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// TableName is the name of the table of the work store that waiting records are stored in.
const TableName = "catalog-commits"

// MaxAge is how long a record waits, from when its change was detected.
const MaxAge = 7 * 24 * time.Hour

// MaxWaiting is the number of records of one source namespace that wait for commits, the newest.
const MaxWaiting = 1000

// Waiting stores the records that may still have to name commits.
//
// Its rows are {source namespace}/{seconds}/{namespace}/{record}. Seconds is the time at which the change was detected, in 16
// hexadecimal digits, so that the oldest sort first.
type Waiting struct {
	table *table.Table
	clock clock.PassiveClock
}

// NewWaiting returns the waiting records stored in a table.
func NewWaiting(table *table.Table, clock clock.PassiveClock) *Waiting {
	return &Waiting{table: table, clock: clock}
}

// Record is a SyncStatus that waits for commits.
type Record struct {
	Name types.NamespacedName
	// Batch is the spec.batch of the SyncStatus. Another SyncStatus of the same name has a different one.
	Batch string
	Spans []Span
}

// row is the stored form of a record.
type row struct {
	Batch string `json:"batch"`
	Spans []Span `json:"spans"`
}

// Expect stores the spans of a record of a source namespace before the record is written, and returns them. A span that an
// earlier attempt has stored keeps its beginning.
func (w *Waiting) Expect(ctx context.Context, namespace string, record *v1alpha1.SyncStatus, spans []Span) ([]Span, error) {
	key := fmt.Sprintf("%s/%016x/%s/%s", namespace, max(record.Status.DetectedAt.Unix(), 0), record.Namespace, record.Name)
	before, _, err := w.table.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the spans of a waiting record: %w", err)
	}
	next := row{record.Spec.Batch, merge(decode(before).Spans, spans)}
	if len(next.Spans) == 0 {
		return nil, nil
	}
	// All fields of a row can be expressed in JSON.
	value, _ := json.Marshal(next)
	if err := w.table.Put(ctx, table.Row{Key: key, Value: value}); err != nil {
		return nil, fmt.Errorf("store the spans of a waiting record: %w", err)
	}
	return next.Spans, w.trim(ctx, namespace)
}

// decode returns the zero row for a value that cannot be decoded.
func decode(value []byte) (out row) {
	_ = json.Unmarshal(value, &out)
	return out
}

// merge returns the spans of both, at most syncstatus.MaxListed. One that is in both begins as before and ends as now.
func merge(before, now []Span) []Span {
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

// In yields the waiting records of a source namespace, the oldest first.
func (w *Waiting) In(ctx context.Context, namespace string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for stored, err := range w.table.Scan(ctx, namespace+"/") {
			if err != nil {
				yield(Record{}, fmt.Errorf("list records that wait for commits: %w", err))
				return
			}
			name, since, ok := parse(stored.Key)
			of := decode(stored.Value)
			if !ok || w.expired(since) || len(of.Spans) == 0 {
				continue // Expect deletes it.
			}
			if !yield(Record{Name: name, Batch: of.Batch, Spans: of.Spans}, nil) {
				return
			}
		}
	}
}

// trim deletes the expired records of a namespace, and those above MaxWaiting.
func (w *Waiting) trim(ctx context.Context, namespace string) error {
	count, err := w.table.Count(ctx, namespace+"/")
	if err != nil {
		return fmt.Errorf("count the waiting records: %w", err)
	}
	var excess []string
	for stored, err := range w.table.Scan(ctx, namespace+"/") {
		if err != nil {
			return fmt.Errorf("list waiting records: %w", err)
		}
		if _, since, ok := parse(stored.Key); ok && !w.expired(since) && count <= MaxWaiting {
			break
		}
		excess = append(excess, stored.Key)
		count--
	}
	if len(excess) == 0 {
		return nil
	}
	if err := w.table.Delete(ctx, excess...); err != nil {
		return fmt.Errorf("delete waiting records: %w", err)
	}
	return nil
}

// expired reports whether a record detected at a time no longer waits.
func (w *Waiting) expired(since time.Time) bool { return w.clock.Since(since) > MaxAge }

// keyParts is the number of parts of a key.
const keyParts = 4

// parse parses the key of a row.
func parse(key string) (record types.NamespacedName, since time.Time, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) != keyParts {
		return record, since, false
	}
	seconds, err := strconv.ParseInt(parts[1], 16, 64)
	return types.NamespacedName{Namespace: parts[2], Name: parts[3]}, time.Unix(seconds, 0), err == nil
}
