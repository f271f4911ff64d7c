// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// Run writes items until ctx ends: the first one at once, and every Interval what has been added meanwhile. A write that
// fails is retried until it succeeds. After ctx has ended Run attempts one last write, if DrainTimeout allows it.
func (b *Buffer[T]) Run(ctx context.Context) {
	b.setRunning(true)
	defer b.setRunning(false)
	for b.run(ctx) == nil {
	}
	if b.config.DrainTimeout == 0 {
		return
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.config.DrainTimeout)
	defer cancel()
	if err := b.Flush(drain); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to write buffered rows at shutdown", "table", b.config.Table.name)
	}
}

// run waits for items, writes them, and waits until the next write is due. The error is that of ctx.
func (b *Buffer[T]) run(ctx context.Context) error {
	select {
	case <-b.added:
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // Of several channels that are ready, select takes any.
		return ctx.Err()
	}
	next := b.config.Clock.NewTimer(b.config.Interval)
	defer next.Stop()
	if err := b.writeUntilDone(ctx); err != nil {
		return err
	}
	select {
	case <-next.C():
	case <-b.crowded:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// writeUntilDone writes the waiting items, and retries until that succeeds. The error is that of ctx.
func (b *Buffer[T]) writeUntilDone(ctx context.Context) error {
	backoff := wait.Backoff{Duration: minRetryDelay, Factor: 2, Jitter: 0.1, Steps: 10, Cap: maxRetryDelay}
	for failed := false; ; failed = true {
		err := b.Flush(ctx)
		switch {
		case err == nil && failed:
			b.blocked(nil)
			return nil
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		klog.FromContext(ctx).Error(err, "Failed to write buffered rows, retrying", "table", b.config.Table.name)
		b.blocked(err)
		if err := b.pause(ctx, backoff.Step()); err != nil {
			return err
		}
	}
}

func (b *Buffer[T]) blocked(err error) {
	if b.config.Blocked != nil {
		b.config.Blocked(err)
	}
}

func (b *Buffer[T]) pause(ctx context.Context, delay time.Duration) error {
	timer := b.config.Clock.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// write writes the waiting items. The caller holds writer.
func (b *Buffer[T]) write(ctx context.Context) error {
	var items []T
	writes := b.config.Encode(func() []T {
		items = b.take()
		return items
	})
	if len(items) == 0 {
		return nil
	}
	err := b.apply(ctx, writes)
	if errors.Is(err, rpctypes.ErrRequestTooLarge) && b.config.TooLarge != nil {
		return b.writeEach(ctx, items)
	}
	b.done(items, err)
	return err
}

// writeEach writes items, at least one of which is too large, one by one.
func (b *Buffer[T]) writeEach(ctx context.Context, items []T) error {
	for i, item := range items {
		one := items[i : i+1]
		err := b.apply(ctx, b.config.Encode(func() []T { return one }))
		switch {
		case errors.Is(err, rpctypes.ErrRequestTooLarge):
			b.lock.Lock()
			b.Remove(item)
			b.lock.Unlock()
			b.config.TooLarge(item)
		case err != nil:
			b.done(items[i:], err)
			return err
		default:
			b.done(one, nil)
		}
	}
	return nil
}

// apply makes writes. Its error is that of ctx when ctx has ended.
func (b *Buffer[T]) apply(ctx context.Context, writes Writes) error {
	timeout := transactionTimeout * time.Duration(1+len(writes.Ranges)+(len(writes.Rows)+len(writes.Deleted)+len(writes.Last))/MaxAtomicRows)
	attempt, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := b.config.Table.apply(attempt, writes)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case attempt.Err() != nil:
		return fmt.Errorf("no response within %v: %w", timeout, err)
	}
	return err
}

// apply makes writes. When it fails, it may have made some of them.
func (t *Table) apply(ctx context.Context, writes Writes) error {
	if err := t.Put(ctx, writes.Rows...); err != nil {
		return err
	}
	if err := t.Delete(ctx, writes.Deleted...); err != nil {
		return err
	}
	for _, keys := range writes.Ranges {
		if err := t.DeleteRange(ctx, keys.From, keys.To); err != nil {
			return err
		}
	}
	return t.Put(ctx, writes.Last...)
}

// take moves the items that wait to those being written, and returns them in the order of Add. The caller holds the lock.
func (b *Buffer[T]) take() []T {
	drain(b.added)
	drain(b.crowded)
	b.writing, b.waiting = b.waiting, map[T]buffered{}
	items := make([]T, 0, len(b.writing))
	for item := range b.writing {
		items = append(items, item)
	}
	slices.SortFunc(items, func(x, y T) int { return cmp.Compare(b.writing[x].sequence, b.writing[y].sequence) })
	return items
}

// done ends a write of items. After an error they wait again, together with items that were added meanwhile.
func (b *Buffer[T]) done(items []T, err error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, item := range items {
		was, kept := b.writing[item]
		delete(b.writing, item)
		again, added := b.waiting[item]
		if err == nil || !kept || added {
			b.bytes -= was.bytes
		}
		if err == nil || !kept {
			continue
		}
		if !added {
			again.bytes = was.bytes
		}
		again.sequence = was.sequence
		b.waiting[item] = again
	}
	if err != nil {
		signal(b.added)
	}
	b.left()
	if b.config.Done != nil {
		b.config.Done(items, err)
	}
}
