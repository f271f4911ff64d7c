// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commitindex

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

// Log keeps which commits hold which objects. It may be used concurrently. Of several processes with the same table only the
// one that leads uses it.
type Log struct {
	table    *storetable.Table
	clock    clock.WithTicker
	capacity int
	// wake lets Run look.
	wake chan struct{}

	mu       sync.Mutex
	interest Interest
	// followed says that somebody has said so in this process. Before, what nobody is known to care for may be cared for.
	followed bool
	// unsaved says that the store does not have the interest, untrimmed that it may have too many rows.
	unsaved, untrimmed bool
	// added counts what has landed since the table was trimmed.
	added int
	// landed are the objects of which that is not told yet; nil: nobody wants to be told.
	landed sets.Set[Object]
}

// New returns the log that a table holds. A capacity of 0 means DefaultCapacity.
func New(table *storetable.Table, clock clock.WithTicker, capacity int) *Log {
	if capacity == 0 {
		capacity = DefaultCapacity
	}
	return &Log{table: table, clock: clock, capacity: capacity, wake: make(chan struct{}, 1)}
}

// Resume takes over what an earlier process has cared for, until Follow says what counts now.
func (l *Log) Resume(ctx context.Context) error {
	value, ok, err := l.table.Get(ctx, interestKey)
	if err != nil {
		return fmt.Errorf("read whose commits are wanted: %w", err)
	}
	if !ok {
		return nil
	}
	stored, err := decode[Interest](storetable.Row{Key: interestKey, Value: value})
	if err != nil {
		leftOut(ctx, err) // as if there were none, until Follow says what counts
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.interest = l.interest.with(stored)
	return nil
}

// Follow says which objects somebody cares for from now on. Run makes it durable.
func (l *Log) Follow(interest Interest) {
	interest = interest.with(Interest{})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.followed && l.interest.equals(interest) {
		return
	}
	l.interest, l.followed, l.unsaved, l.untrimmed = interest, true, true, true
	l.stir()
}

// Wants says whether somebody cares for an object.
func (l *Log) Wants(o Object) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.interest.includes(o)
}

// Pushing notes what a push, by which a branch gets a new tip, will have brought if the remote accepts it.
func (l *Log) Pushing(ctx context.Context, tip string, landings []Landing) error {
	if err := l.table.Put(ctx, pushRows(tip, landings, l.clock.Now())...); err != nil {
		return fmt.Errorf("note what a push brings: %w", err)
	}
	return nil
}

// Landed says that a remote has accepted a push. After an error it is to be said again; that it is said twice does no harm.
func (l *Log) Landed(ctx context.Context, tip string) error {
	for row, err := range l.table.Scan(ctx, pushPrefix(tip)) {
		if err != nil {
			return fmt.Errorf("read what a push has brought: %w", err)
		}
		push, err := decode[pushRow](row)
		if err != nil {
			leftOut(ctx, err)
		}
		if err := l.table.Put(ctx, objectRows(push.Landings, l.clock.Now())...); err != nil {
			return fmt.Errorf("note what has landed: %w", err)
		}
		l.tell(push.Landings)
		if err := l.table.Delete(ctx, row.Key); err != nil {
			return fmt.Errorf("forget a push that has landed: %w", err)
		}
	}
	return nil
}

// Withdraw says that a remote has refused a push.
func (l *Log) Withdraw(ctx context.Context, tip string) error {
	for row, err := range l.table.Scan(ctx, pushPrefix(tip)) {
		if err == nil {
			err = l.table.Delete(ctx, row.Key)
		}
		if err != nil {
			return fmt.Errorf("forget a push that was refused: %w", err)
		}
	}
	return nil
}

// Of returns what is known of an object.
func (l *Log) Of(ctx context.Context, o Object) ([]Landing, error) {
	var landings []Landing
	for row, err := range l.table.Scan(ctx, objectPrefix(o)) {
		if err != nil {
			return nil, fmt.Errorf("read which commits hold %s %s/%s: %w", o.GroupResource, o.Namespace, o.Name, err)
		}
		stored, err := decode[objectRow](row)
		if err != nil {
			leftOut(ctx, err)
			continue
		}
		landings = append(landings, stored.Landing)
	}
	return landings, nil
}

// leftOut tells of a row that cannot be read. Nobody who pushes waits for it, and it goes in time.
func leftOut(ctx context.Context, err error) {
	klog.FromContext(ctx).Error(err, "Some of what is known of commits cannot be read")
}

// tell remembers what Run is to tell.
func (l *Log) tell(landings []Landing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.landed != nil {
		for _, landing := range landings {
			l.landed.Insert(landing.Object)
		}
	}
	if l.added += len(landings); l.added > l.capacity/trimShare {
		l.untrimmed = true
	}
	l.stir()
}

// stir lets Run look.
func (l *Log) stir() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
