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
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/failpoint"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// IntakeLength bounds the changes that are not durable yet. A full intake blocks the watches and drops nothing.
	IntakeLength = 1024
	// MaxBatch bounds the rows of one transaction.
	MaxBatch = storetable.MaxAtomicRows
	// intakeInterval is the minimum time between transactions that are not full. While changes keep arriving it limits
	// transactions, each with a sync, to tens per second, and is shorter than the push of the first change.
	intakeInterval = 20 * time.Millisecond
)

// Row is a change that is durable.
type Row struct {
	Sequence uint64
	Change   Change
}

// Outbox stores the changes that no remote has accepted yet, in the order of events. Rows are keyed "uid/sequence" with the
// uid of their destination, so that a destination that is created again does not inherit rows.
type Outbox struct {
	table  *storetable.Table
	intake chan Row
	// turn is a lock that keeps the intake in the order of sequences. It is a channel so that a context can end the wait.
	turn chan struct{}
	last uint64
	// written is the last sequence that is known to be in the store. Later rows may be there already, but may be written
	// again: a row that is pushed and removed meanwhile would reappear.
	written atomic.Uint64
}

// Events are the callbacks of Run. They are called from one goroutine.
type Events struct {
	// Durable is called for each row that has been written. Next may return it before.
	Durable func(Row)
	// TooLarge is called for a row that is too large for the store. It is not durable.
	TooLarge func(Row)
	// Blocked is called with the error when rows cannot be written, and with nil when they can be written again.
	Blocked func(error)
}

// Open calls recovered for each row that an earlier process left, oldest first within a destination. New sequences
// follow those of the rows and last, so that none is reused after its row was removed.
func Open(ctx context.Context, table *storetable.Table, last uint64, recovered func(Row)) (*Outbox, error) {
	o := &Outbox{table: table, intake: make(chan Row, IntakeLength), turn: make(chan struct{}, 1), last: last}
	for stored, err := range table.Scan(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("read the outbox: %w", err)
		}
		row, err := DecodeRow(stored)
		if err != nil {
			return nil, Unreadable(o.table, stored, err)
		}
		o.last = max(o.last, row.Sequence)
		recovered(row)
	}
	o.written.Store(o.last)
	return o, nil
}

// Enqueue adds a change. It calls sequenced with the change's sequence before the row is visible, and blocks while the intake
// is full. After an error, which is that of ctx, the row does not exist.
func (o *Outbox) Enqueue(ctx context.Context, change Change, sequenced func(uint64)) error {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	o.last++
	sequenced(o.last)
	select {
	case o.intake <- Row{Sequence: o.last, Change: change}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Len returns the number of changes that are not durable yet. The intake is full at IntakeLength.
func (o *Outbox) Len() int { return len(o.intake) }

// Run makes enqueued changes durable until ctx ends: the first after an idle time at once, and then in batches every
// intakeInterval. It retries a failing store until it succeeds. Meanwhile the intake fills up and blocks the watches.
func (o *Outbox) Run(ctx context.Context, events Events) {
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		rows := o.gather(ctx, due.C)
		if len(rows) == 0 {
			return
		}
		due.Reset(intakeInterval)
		stored := make([]storetable.Row, len(rows))
		for i, row := range rows {
			stored[i] = EncodeRow(row)
		}
		err := o.write(ctx, stored, events)
		switch {
		case errors.Is(err, rpctypes.ErrRequestTooLarge):
			err = o.writeEach(ctx, rows, stored, events)
		case err == nil:
			failpoint.Reach("outbox-written")
			o.written.Store(rows[len(rows)-1].Sequence)
			for _, row := range rows {
				events.Durable(row)
			}
		}
		if err != nil {
			return
		}
	}
}

// gather waits for rows until there is one and the next transaction is due, or one is full. It returns none when ctx ends.
func (o *Outbox) gather(ctx context.Context, due <-chan time.Time) []Row {
	var rows []Row
	var written <-chan time.Time // Nil while there is no row.
	for len(rows) < MaxBatch {
		select {
		case row := <-o.intake:
			rows, written = append(rows, row), due
		case <-written:
			return o.fill(rows)
		case <-ctx.Done():
			return nil
		}
	}
	return rows
}

// fill adds the rows that are in the intake already.
func (o *Outbox) fill(rows []Row) []Row {
	for len(rows) < MaxBatch {
		select {
		case row := <-o.intake:
			rows = append(rows, row)
		default:
			return rows
		}
	}
	return rows
}

// write returns an error only when ctx ended or a row is too large.
func (o *Outbox) write(ctx context.Context, rows []storetable.Row, events Events) error {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 10 * time.Second}
	for failed := false; ; failed = true {
		err := o.table.Put(ctx, rows...)
		switch {
		case err == nil && failed:
			events.Blocked(nil)
			return nil
		case err == nil || errors.Is(err, rpctypes.ErrRequestTooLarge):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		klog.FromContext(ctx).Error(err, "Failed to write outbox", "changes", len(rows))
		events.Blocked(fmt.Errorf("changes cannot be kept until they are pushed: %w", err))
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// writeEach writes rows of which at least one is too large. It returns an error only if ctx has ended.
func (o *Outbox) writeEach(ctx context.Context, rows []Row, stored []storetable.Row, events Events) error {
	for i, row := range rows {
		err := o.write(ctx, stored[i:i+1], events)
		switch {
		case err == nil:
			o.written.Store(row.Sequence)
			events.Durable(row)
		case errors.Is(err, rpctypes.ErrRequestTooLarge):
			events.TooLarge(row)
		default:
			return err
		}
	}
	return nil
}

// Next returns a destination's oldest rows, at most limit, and none after the contents reach maxBytes.
func (o *Outbox) Next(ctx context.Context, destination types.UID, limit, maxBytes int) ([]Row, error) {
	var rows []Row
	size, written := 0, o.written.Load()
	for stored, err := range o.table.Scan(ctx, rowPrefix(destination)) {
		if err != nil {
			return nil, fmt.Errorf("read the outbox: %w", err)
		}
		row, err := DecodeRow(stored)
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

// RemoveAll removes all rows of a destination.
func (o *Outbox) RemoveAll(ctx context.Context, destination types.UID) error {
	for {
		var keys []string
		for stored, err := range o.table.Scan(ctx, rowPrefix(destination)) {
			if err != nil {
				return fmt.Errorf("read the outbox: %w", err)
			}
			if keys = append(keys, stored.Key); len(keys) == MaxBatch {
				break
			}
		}
		if len(keys) == 0 {
			return nil
		}
		if err := o.table.Delete(ctx, keys...); err != nil {
			return fmt.Errorf("remove rows from the outbox: %w", err)
		}
	}
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

// EncodeRow returns the stored form of a row: one line of JSON with the change, followed by the content.
func EncodeRow(row Row) storetable.Row {
	// A Change has nothing that JSON cannot express.
	head, _ := json.Marshal(row.Change)
	return storetable.Row{Key: rowKey(row), Value: append(append(head, '\n'), row.Change.Content...)}
}

// DecodeRow decodes what EncodeRow has returned. An error names the row.
func DecodeRow(stored storetable.Row) (Row, error) {
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
