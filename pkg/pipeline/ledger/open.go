// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// Open restores the ledger from the rows with its prefix.
func Open(ctx context.Context, config Config) (*Ledger, error) {
	l := newLedger(config)
	r := restorer{
		rows: l.rows, changes: l.changes, debounce: config.Debounce, namespaces: map[string]string{}, seen: map[item.Key]struct{}{},
	}
	if err := r.restore(ctx); err != nil {
		return nil, fmt.Errorf("read the sink ledger: %w", err)
	}
	l.batch, l.sequence, l.unreadable = r.batch, r.sequence, r.unreadable
	return l, nil
}

// newLedger returns an empty ledger.
func newLedger(config Config) *Ledger {
	l := &Ledger{
		config: config, maxBatchBytes: maxBatchBytes, rows: rows{table: config.Table, prefix: config.Prefix}, wake: newWakeup(config.Clock),
	}
	// The buffer uses real time, because it waits for the disk.
	l.buffer = table.NewBuffer(table.BufferConfig[item.Key]{
		Table: config.Table, Lock: &l.mu,
		MaxRows: maxRows, MaxBytes: maxBytes,
		Interval: flushInterval, DrainTimeout: controller.DrainTimeout,
		Encode: l.encodeRows, Done: l.written,
	})
	l.room = room{cond: sync.NewCond(&l.mu)}
	l.objects, l.schedule, l.run = newObjects(), newSchedule(config.Clock, l.wake), &run{}
	l.unwritten = &unwritten{buffer: l.buffer, items: map[item.Key][]byte{}}
	l.changes = &changes{objects: l.objects, schedule: l.schedule, unwritten: l.unwritten, run: l.run}
	return l
}

// restorer reads the rows of a ledger into its parts. No lock is held: the ledger is not in use yet.
type restorer struct {
	rows     rows
	changes  *changes
	debounce func() time.Duration

	// batch, sequence and unreadable are those of the ledger.
	batch      *batchState
	sequence   int64
	unreadable int

	// namespaces interns the namespaces of keys.
	namespaces map[string]string
	// seen are the objects of the batch that have rows.
	seen map[item.Key]struct{}
	// headUnreadable reports whether the row of the batch could not be read.
	headUnreadable bool
	// invalidKeys are the keys of rows that cannot be parsed.
	invalidKeys []string
	// example is the error of one unreadable row.
	example error
}

func (r *restorer) restore(ctx context.Context) error {
	if err := r.restoreHead(ctx); err != nil {
		return err
	}
	for stored, err := range r.rows.table.ScanEach(ctx, r.rows.prefix, "") {
		var unopened *table.UnopenedError
		if err != nil && !errors.As(err, &unopened) {
			return err
		}
		if stored.Key != r.rows.headKey() {
			r.restoreRow(stored, err)
		}
	}
	r.finish()
	if r.unreadable > 0 {
		klog.FromContext(ctx).Error(r.example, "Failed to read rows of the sink ledger, sending their objects again", "rows", r.unreadable,
			"first", r.rows.table.FullKey(r.rows.prefix))
	}
	return r.rows.table.Delete(ctx, r.invalidKeys...)
}

// restoreHead restores the batch.
func (r *restorer) restoreHead(ctx context.Context) error {
	var err error
	r.batch, r.sequence, err = r.rows.head(ctx)
	var unreadable *unreadableError
	if errors.As(err, &unreadable) {
		r.headUnreadable = true
		r.recordUnreadable(err)
		return nil
	}
	return err
}

// recordUnreadable counts an unreadable row.
func (r *restorer) recordUnreadable(err error) {
	if r.unreadable++; r.example == nil {
		r.example = err
	}
}

// restoreRow restores an object.
func (r *restorer) restoreRow(stored table.Row, err error) {
	key, misnamed := r.rows.parseKey(stored.Key)
	if misnamed != nil {
		r.invalidKeys = append(r.invalidKeys, stored.Key)
		r.recordUnreadable(misnamed)
		return
	}
	o := r.changes.objects.add(r.intern(key))
	var read row
	if err == nil {
		read, err = decodeRow(stored.Value)
	}
	if err != nil {
		r.recordUnreadable(err)
		read = row{state: unknown}
	}
	r.changes.objects.setState(o, read.state, digestOf(read.Digest))
	r.sequence = max(r.sequence, read.Settled)
	r.restoreChange(o, key, read)
}

// intern returns a copy of a key that does not keep the row's key in memory.
func (r *restorer) intern(key item.Key) item.Key {
	namespace, found := r.namespaces[key.Namespace]
	if !found {
		namespace = strings.Clone(key.Namespace)
		r.namespaces[namespace] = namespace
	}
	key.Namespace, key.Name = namespace, strings.Clone(key.Name)
	return key
}

// restoreChange restores the pending change of an object, unless the batch contains it.
func (r *restorer) restoreChange(o *object, key item.Key, read row) {
	o.size = uint32(len(read.item))
	change := &pending{key: key, remove: read.Pending == remove, digest: digestOf(read.PendingDigest)}
	inBatch := r.batch != nil && r.restoreEntry(o, change, read.Settled)
	if read.Pending == "" || inBatch {
		return
	}
	p := r.changes.schedule.pend(o, key)
	p.remove, p.digest = change.remove, change.digest
	if o.inBatch && !p.remove {
		r.changes.unwritten.items[key] = read.item
	}
	r.changes.schedule.move(p, func(now time.Time) {
		if p.due = now; !p.remove { // An upsert waits for the list that finds deletions during the downtime.
			p.due = now.Add(r.debounce())
		}
	})
}

// restoreEntry reports whether the batch contains the pending change of a row.
func (r *restorer) restoreEntry(o *object, change *pending, settled int64) bool {
	e := r.batch.entries[change.key]
	if e == nil {
		return false
	}
	r.seen[change.key] = struct{}{}
	if settled == r.batch.sequence {
		r.settle(e)
		return false
	}
	o.inBatch = true
	return e.change.remove == change.remove && e.change.digest == change.digest
}

// settle records that an entry of the batch was settled before the restart.
func (r *restorer) settle(e *entry) {
	if r.batch.settle(e); r.batch.left == 0 {
		r.changes.unwritten.addHead()
	}
}

// finish combines the rows of the objects and the batch.
func (r *restorer) finish() {
	if r.batch != nil {
		r.restoreWithoutRows()
	}
	if !r.headUnreadable {
		return
	}
	// Every object that was not sent before may have been in the batch.
	for _, o := range r.changes.objects.all() {
		if o.state == unsent {
			r.changes.objects.setState(o, unknown, [16]byte{})
		}
	}
}

// restoreWithoutRows restores the entries of the batch whose objects have no row. A row is deleted when the removal was delivered.
func (r *restorer) restoreWithoutRows() {
	for key, e := range r.batch.entries {
		if _, seen := r.seen[key]; seen {
			continue
		}
		if e.change.remove {
			r.settle(e)
		} else {
			r.changes.objects.add(key).inBatch = true
		}
	}
}
