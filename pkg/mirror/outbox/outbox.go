// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outbox stores the changes of files that no remote has accepted yet.
//
// A change is durable once Events.Durable was called for its row, and stays until Remove. Rows of a destination are read
// and removed in order. The intake of changes that are not durable yet is bounded; when it is full, Enqueue blocks. A Queue
// is the in-memory index of one destination's rows.
package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

// MaxBatch bounds the rows of one transaction.
const MaxBatch = storetable.MaxAtomicRows

// openedRows is how many rows Open reads at once. A row has up to 1.5 MiB.
const openedRows = 64

// Row is a change with its place in the outbox.
type Row struct {
	Sequence uint64
	Change   Change
}

// Outbox stores the changes that no remote has accepted yet, in the order of events. Rows are keyed "uid/sequence" with the
// uid of their destination, so that a destination that is created again does not inherit rows.
type Outbox struct {
	table *storetable.Table
	// events are those of Run, and only used by it.
	events Events
	// written is the last sequence that is known to be in the store. Later rows may be there already, but may be written
	// again: a row that is pushed and removed meanwhile would reappear.
	written atomic.Uint64

	// turn is a lock that keeps the intake in the order of sequences. It is a channel so that a context can end the wait. It
	// guards last, the last sequence.
	turn chan struct{}
	last uint64

	// mu guards the intake. It is not held during writes.
	mu sync.Mutex
	// intake has the changes that are not durable yet, in the order of their sequences.
	intake *storetable.Buffer[*Row]
}

// Open calls recovered for each row that an earlier process left, oldest first within a destination. New sequences
// follow those of the rows and last, so that none is reused after its row was removed.
func Open(ctx context.Context, table *storetable.Table, last uint64, recovered func(Row)) (*Outbox, error) {
	o := &Outbox{table: table, turn: make(chan struct{}, 1), last: last}
	o.intake = o.newIntake()
	for stored, err := range table.ScanBy(ctx, "", openedRows) {
		if err != nil {
			return nil, fmt.Errorf("read the outbox: %w", err)
		}
		row, err := decodeRow(stored)
		if err != nil {
			return nil, Unreadable(o.table, stored, err)
		}
		o.last = max(o.last, row.Sequence)
		recovered(row)
	}
	o.written.Store(o.last)
	return o, nil
}

// Next returns a destination's oldest rows, at most limit, and none after the contents reach maxBytes. It reads up to limit rows at once:
// [Queue.Fitting] returns how many reach maxBytes.
func (o *Outbox) Next(ctx context.Context, destination types.UID, limit, maxBytes int) ([]Row, error) {
	var rows []Row
	size, written := 0, o.written.Load()
	for stored, err := range o.table.ScanBy(ctx, rowPrefix(destination), limit) {
		if err != nil {
			return nil, fmt.Errorf("read the outbox: %w", err)
		}
		row, err := decodeRow(stored)
		if err != nil {
			return nil, Unreadable(o.table, stored, err)
		}
		if row.Sequence > written {
			break
		}
		rows = append(rows, row)
		size += len(row.Change.Content)
		if len(rows) >= limit || size >= maxBytes {
			break
		}
	}
	return rows, nil
}

// Remove removes rows that are in Git or superseded.
func (o *Outbox) Remove(ctx context.Context, rows []Row) error {
	keys := make([]string, len(rows))
	for i, row := range rows {
		keys[i] = rowKey(row)
	}
	if err := o.table.Delete(ctx, keys...); err != nil {
		return fmt.Errorf("remove rows from the outbox: %w", err)
	}
	return nil
}

// RemoveAll removes all rows of a destination that were written before.
func (o *Outbox) RemoveAll(ctx context.Context, destination types.UID) error {
	return o.RemoveThrough(ctx, destination, math.MaxUint64)
}

// RemoveThrough removes the rows of a destination up to and including a sequence, the oldest first.
func (o *Outbox) RemoveThrough(ctx context.Context, destination types.UID, sequence uint64) error {
	last := rowKey(Row{Sequence: sequence, Change: Change{UID: destination}})
	var keys []string
	for key, err := range o.table.Keys(ctx, rowPrefix(destination)) {
		if err != nil {
			return fmt.Errorf("read the outbox: %w", err)
		}
		if key > last {
			break
		}
		keys = append(keys, key)
	}
	if err := o.table.Delete(ctx, keys...); err != nil {
		return fmt.Errorf("remove rows from the outbox: %w", err)
	}
	return nil
}

// Unreadable returns the error for a row that this version cannot read, with its key and the remedy. The mirror must not
// ignore such a row, because its change would be lost.
func Unreadable(table *storetable.Table, row storetable.Row, err error) error {
	return fmt.Errorf("row %s of the working state cannot be read, by which a change could be lost: %w; run the version that wrote it, "+
		`or remove the working state as "A record that cannot be read" in operations.md says`, table.FullKey(row.Key), err)
}

func rowPrefix(destination types.UID) string { return string(destination) + "/" }

func rowKey(row Row) string {
	return fmt.Sprintf("%s%016x", rowPrefix(row.Change.UID), row.Sequence)
}

// encodeRow returns the stored form of a row: one line of JSON with the change, followed by the content.
func encodeRow(row Row) storetable.Row {
	// A Change has nothing that JSON cannot express.
	head, _ := json.Marshal(row.Change)
	return storetable.Row{Key: rowKey(row), Value: append(append(head, '\n'), row.Change.Content...)}
}

// decodeRow decodes what encodeRow has returned. An error names the row.
func decodeRow(stored storetable.Row) (Row, error) {
	var row Row
	uid, place, _ := strings.Cut(stored.Key, "/")
	sequence, err := strconv.ParseUint(place, 16, 64)
	if err != nil {
		return row, fmt.Errorf("its key does not end with a sequence: %w", err)
	}
	head, content, _ := bytes.Cut(stored.Value, []byte("\n"))
	if err := json.Unmarshal(head, &row.Change); err != nil {
		return row, fmt.Errorf("decode it: %w", err)
	}
	row.Sequence, row.Change.UID = sequence, types.UID(uid)
	if row.Change.Operation != v1alpha1.OperationDelete {
		row.Change.Content = content
	}
	return row, nil
}
