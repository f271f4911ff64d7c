// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

// TableName is the name of the table of the work store that has the intake of catalogs.
const TableName = "catalog-intake"

// Open returns the intake that is stored in a table.
func Open(ctx context.Context, table *storetable.Table, config Config) (*Intake, error) {
	i := &Intake{
		table: table, clock: config.Clock, capacity: config.Capacity, metrics: config.Metrics,
		wake: make(chan struct{}, 1), namespaces: map[string][]*batch{}, notices: newNotices(),
	}
	if i.clock == nil {
		i.clock = clock.RealClock{}
	}
	if i.capacity <= 0 {
		i.capacity = DefaultCapacity
	}
	if i.metrics == nil {
		i.metrics = newMetrics("", "")
	}
	i.buffer = i.newBuffer(table)
	i.metrics.capacity.Set(float64(i.capacity))
	unreadable, err := i.restore(ctx)
	if err != nil {
		return nil, fmt.Errorf("read pending changes: %w", err)
	}
	if err := i.replace(ctx, unreadable); err != nil {
		return nil, fmt.Errorf("replace unreadable pending changes: %w", err)
	}
	return i, nil
}

// restore reads the table, and returns the keys of rows that this version cannot decode.
func (i *Intake) restore(ctx context.Context) (unreadable []string, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for row, err := range i.table.Scan(ctx, "") {
		if err != nil {
			return nil, err
		}
		if err := i.restoreRow(row); err != nil {
			klog.FromContext(ctx).Error(err, "Failed to decode pending change, comparing its namespace",
				"row", i.table.FullKey(row.Key))
			unreadable = append(unreadable, row.Key)
		}
	}
	for _, batches := range i.namespaces {
		for _, b := range batches {
			i.restored(b)
			i.changes += len(b.changes)
		}
	}
	return unreadable, nil
}

// restoreRow adds a row to its batch. Rows are read batch by batch, and the row of a batch before those of its changes.
func (i *Intake) restoreRow(row storetable.Row) error {
	at, err := parseKey(row.Key)
	if err != nil {
		return err
	}
	batches := i.namespaces[at.namespace]
	if len(batches) > 0 && batches[len(batches)-1].number == at.number {
		return batches[len(batches)-1].restore(at.object, row.Value)
	}
	b := newBatch(at.namespace, at.number, i.clock.Now())
	if err := b.restore(at.object, row.Value); err != nil {
		return err
	}
	i.namespaces[at.namespace] = append(batches, b)
	return nil
}

// restored completes a restored batch. Its first event is not later than that of any change. Stored changes of a batch that has overflowed
// are those that were not yet deleted.
func (i *Intake) restored(b *batch) {
	if b.overflowed && len(b.changes) > 0 {
		clear(b.changes)
		i.buffer.Add(unwritten{batch: b, part: droppedPart}, 0)
	}
	for _, change := range b.changes {
		if change.First.Before(b.first) {
			b.first = change.First
		}
	}
	b.opened = b.first
}

// replace requests a comparison of the namespaces of unreadable rows, and then deletes the rows.
func (i *Intake) replace(ctx context.Context, unreadable []string) error {
	if len(unreadable) == 0 {
		return nil
	}
	for _, key := range unreadable {
		at, _ := parseKey(key) // parseKey returns the namespace even with an error.
		i.Resync(at.namespace, Unreadable)
	}
	if err := i.buffer.Flush(ctx); err != nil {
		return err
	}
	return i.table.Delete(ctx, unreadable...)
}
