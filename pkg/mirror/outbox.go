// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/failpoint"
	"github.com/configbutler/slipstream/pkg/workstore"
)

const (
	// intakeLength bounds the changes that wait to be made durable. A full intake holds
	// the watches back; it drops nothing.
	intakeLength = 1024
	// intakeBatch is the most rows written in one transaction: etcd's default --max-txn-ops.
	intakeBatch = 128
)

// Row is a change that is durable.
type Row struct {
	Sequence uint64
	Change   Change
}

// Outbox holds the changes that no remote has accepted yet, in the order in which they
// were seen. Rows are keyed "namespace/name/sequence" of their destination.
type Outbox struct {
	table  *workstore.Table
	intake chan Row

	// mu makes the order of sequences the order of the intake.
	mu   sync.Mutex
	last uint64
}

// OpenOutbox reads what an earlier process left and calls recovered for each row, oldest
// first within a destination.
func OpenOutbox(ctx context.Context, table *workstore.Table, recovered func(Row)) (*Outbox, error) {
	o := &Outbox{table: table, intake: make(chan Row, intakeLength)}
	for stored, err := range table.Scan(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("read the outbox: %w", err)
		}
		row, err := decodeRow(stored)
		if err != nil {
			return nil, err
		}
		o.last = max(o.last, row.Sequence)
		recovered(row)
	}
	return o, nil
}

// Enqueue hands a change over to be made durable. It calls sequenced with the change's
// place in the order before anybody else can see the row, and blocks while the intake is
// full.
func (o *Outbox) Enqueue(ctx context.Context, change Change, sequenced func(uint64)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	sequenced(o.last)
	select {
	case o.intake <- Row{Sequence: o.last, Change: change}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run makes enqueued changes durable until ctx ends, writing at once what has gathered,
// and calls durable for each row written. A store that fails is tried again for as long
// as it takes: the intake fills up meanwhile and holds the watches back.
func (o *Outbox) Run(ctx context.Context, durable func(Row)) {
	for {
		rows := o.gather(ctx)
		if len(rows) == 0 {
			return
		}
		if err := o.write(ctx, rows); err != nil {
			return
		}
		failpoint.Reach("outbox-written")
		for _, row := range rows {
			durable(row)
		}
	}
}

// gather waits for one row and takes what else is there. It returns none when ctx ends.
func (o *Outbox) gather(ctx context.Context) []Row {
	var rows []Row
	select {
	case row := <-o.intake:
		rows = append(rows, row)
	case <-ctx.Done():
		return nil
	}
	for len(rows) < intakeBatch {
		select {
		case row := <-o.intake:
			rows = append(rows, row)
		default:
			return rows
		}
	}
	return rows
}

// write returns an error only when ctx ended.
func (o *Outbox) write(ctx context.Context, rows []Row) error {
	stored := make([]workstore.Row, len(rows))
	for i, row := range rows {
		value, err := json.Marshal(row.Change)
		if err != nil {
			return fmt.Errorf("encode an outbox row: %w", err)
		}
		stored[i] = workstore.Row{Key: rowKey(row.Change.Destination, row.Sequence), Value: value}
	}
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 10 * time.Second}
	for {
		err := o.table.Put(ctx, stored...)
		if err == nil {
			return nil
		}
		klog.FromContext(ctx).Error(err, "Changes wait because the outbox cannot be written", "changes", len(rows))
		select {
		case <-time.After(backoff.Step()):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Next returns a destination's oldest rows: at most limit of them, and no more once their
// contents pass maxBytes.
func (o *Outbox) Next(ctx context.Context, destination types.NamespacedName, limit, maxBytes int) ([]Row, error) {
	var rows []Row
	size := 0
	for stored, err := range o.table.Scan(ctx, rowPrefix(destination)) {
		if err != nil {
			return nil, fmt.Errorf("read the outbox: %w", err)
		}
		row, err := decodeRow(stored)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
		size += len(row.Change.Content)
		if len(rows) >= limit || size >= maxBytes {
			break
		}
	}
	return rows, nil
}

// Remove forgets rows: they are in Git, or nobody wants them there any more.
func (o *Outbox) Remove(ctx context.Context, rows []Row) error {
	keys := make([]string, len(rows))
	for i, row := range rows {
		keys[i] = rowKey(row.Change.Destination, row.Sequence)
	}
	if err := o.table.Delete(ctx, keys...); err != nil {
		return fmt.Errorf("remove rows from the outbox: %w", err)
	}
	return nil
}

func rowPrefix(destination types.NamespacedName) string {
	return destination.Namespace + "/" + destination.Name + "/"
}

func rowKey(destination types.NamespacedName, sequence uint64) string {
	return fmt.Sprintf("%s%016x", rowPrefix(destination), sequence)
}

func decodeRow(stored workstore.Row) (Row, error) {
	var row Row
	sequence, err := strconv.ParseUint(stored.Key[strings.LastIndexByte(stored.Key, '/')+1:], 16, 64)
	if err != nil {
		return row, fmt.Errorf("outbox key %q: %w", stored.Key, err)
	}
	row.Sequence = sequence
	if err := json.Unmarshal(stored.Value, &row.Change); err != nil {
		return row, fmt.Errorf("decode outbox row %q: %w", stored.Key, err)
	}
	return row, nil
}
