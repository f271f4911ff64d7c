// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/configbutler/slipstream/pkg/store/failpoint"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// intakeLength bounds the changes that are not durable yet. A full intake blocks the watches and drops nothing.
	intakeLength = 1024
	// maxIntakeBytes bounds the size of their files.
	maxIntakeBytes = 64 << 20
	// intakeInterval is the minimum time between writes while the intake is less than half full. While changes keep
	// arriving it limits transactions, each with a sync, to tens per second, and is shorter than the push of the first change.
	intakeInterval = 20 * time.Millisecond
)

// Events are the callbacks of Run. They are called from one goroutine.
type Events struct {
	// Durable is called for each row that has been written. Next may return it before. It must not use the outbox.
	Durable func(Row)
	// TooLarge is called for a row that is too large for the store. It is not durable.
	TooLarge func(Row)
	// Blocked is called with the error when rows cannot be written, and with nil when they can be written again.
	Blocked func(error)
}

func (o *Outbox) newIntake() *storetable.Buffer[*Row] {
	return storetable.NewBuffer(storetable.BufferConfig[*Row]{
		Table: o.table, Lock: &o.mu,
		MaxRows: intakeLength, MaxBytes: maxIntakeBytes,
		Interval: intakeInterval, // Without a DrainTimeout, a process that is not the leader any more writes nothing.
		Encode:   o.encode, Done: o.done,
		TooLarge: func(row *Row) { o.events.TooLarge(*row) },
		Blocked:  o.blocked,
	})
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
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.intake.WaitForRoom(ctx); err != nil {
		return err
	}
	o.intake.Add(&Row{Sequence: o.last, Change: change}, len(change.Content))
	return nil
}

// Run makes enqueued changes durable until ctx ends: the first after an idle time at once, and then together every
// intakeInterval. It retries a failing store until it succeeds. Meanwhile the intake fills up and blocks the watches.
func (o *Outbox) Run(ctx context.Context, events Events) {
	o.events = events
	o.intake.Run(ctx)
}

// encode returns the writes of enqueued rows, in their order. Rows do not change, so that the lock is not held meanwhile.
func (o *Outbox) encode(take func() []*Row) storetable.Writes {
	o.mu.Lock()
	rows := take()
	o.mu.Unlock()
	stored := make([]storetable.Row, len(rows))
	for i, row := range rows {
		stored[i] = encodeRow(*row)
	}
	return storetable.Writes{Rows: stored}
}

// done publishes rows that have been written.
func (o *Outbox) done(rows []*Row, err error) {
	if err != nil {
		return
	}
	failpoint.Reach("outbox-written")
	o.written.Store(rows[len(rows)-1].Sequence)
	for _, row := range rows {
		o.events.Durable(*row)
	}
}

func (o *Outbox) blocked(err error) {
	if err != nil {
		err = fmt.Errorf("changes cannot be kept until they are pushed: %w", err)
	}
	o.events.Blocked(err)
}
