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

	"github.com/configbutler/slipstream/pkg/store/table"
)

// Index is the commit index. It is safe for concurrent use. Of several processes with the same table, only the leader uses it.
type Index struct {
	table    *table.Table
	clock    clock.WithTicker
	capacity int
	// wake triggers a pass of Run.
	wake chan struct{}

	mu    sync.Mutex
	scope Scope
	// scopeSet is true once this process has called SetScope. Until then nothing is deleted for being out of scope.
	scopeSet bool
	// scopeUnsaved is true if the scope is not stored yet, trimPending if the table may have too many rows.
	scopeUnsaved, trimPending bool
	// added counts the entries recorded since the table was last trimmed.
	added int
	// recorded has the objects with new entries that Run has not reported yet; nil while Run does not run.
	recorded sets.Set[Object]
}

// New returns the index stored in a table. A capacity of 0 means DefaultCapacity.
func New(table *table.Table, clock clock.WithTicker, capacity int) *Index {
	if capacity == 0 {
		capacity = DefaultCapacity
	}
	return &Index{table: table, clock: clock, capacity: capacity, wake: make(chan struct{}, 1)}
}

// Load adds the stored scope of an earlier process, which applies until SetScope is called.
func (i *Index) Load(ctx context.Context) error {
	value, ok, err := i.table.Get(ctx, scopeKey)
	if err != nil {
		return fmt.Errorf("read the scope of the commit index: %w", err)
	}
	if !ok {
		return nil
	}
	stored, err := decode[Scope](table.Row{Key: scopeKey, Value: value})
	if err != nil {
		logUnreadable(ctx, err) // The scope is empty until SetScope.
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.scope = i.scope.union(stored)
	return nil
}

// SetScope sets which objects entries are stored for. Run stores the scope.
func (i *Index) SetScope(scope Scope) {
	scope = scope.union(Scope{})
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.scopeSet && i.scope.equals(scope) {
		return
	}
	i.scope, i.scopeSet, i.scopeUnsaved, i.trimPending = scope, true, true, true
	i.trigger()
}

// InScope reports whether entries of an object are stored.
func (i *Index) InScope(o Object) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.scope.includes(o)
}

// Prepare stores the entries of a push, which moves a branch to a new tip, before the push is sent.
func (i *Index) Prepare(ctx context.Context, tip string, entries []Entry) error {
	if err := i.table.Put(ctx, pushRows(tip, entries, i.clock.Now())...); err != nil {
		return fmt.Errorf("prepare the entries of a push: %w", err)
	}
	return nil
}

// Record adds the prepared entries of a push that the remote has accepted. It is idempotent, and must be called again after an
// error.
func (i *Index) Record(ctx context.Context, tip string) error {
	for row, err := range i.table.Scan(ctx, pushPrefix(tip)) {
		if err != nil {
			return fmt.Errorf("read the entries of a push: %w", err)
		}
		push, err := decode[pushRow](row)
		if err != nil {
			logUnreadable(ctx, err)
		}
		if err := i.table.Put(ctx, objectRows(push.Entries, i.clock.Now())...); err != nil {
			return fmt.Errorf("record the entries of a push: %w", err)
		}
		i.notify(push.Entries)
		if err := i.table.Delete(ctx, row.Key); err != nil {
			return fmt.Errorf("delete the prepared entries of a push: %w", err)
		}
	}
	return nil
}

// Discard deletes the prepared entries of a push that the remote has rejected.
func (i *Index) Discard(ctx context.Context, tip string) error {
	for row, err := range i.table.Scan(ctx, pushPrefix(tip)) {
		if err == nil {
			err = i.table.Delete(ctx, row.Key)
		}
		if err != nil {
			return fmt.Errorf("discard the entries of a push: %w", err)
		}
	}
	return nil
}

// Lookup returns the entries of an object, in no particular order.
func (i *Index) Lookup(ctx context.Context, o Object) ([]Entry, error) {
	var entries []Entry
	for row, err := range i.table.Scan(ctx, objectPrefix(o)) {
		if err != nil {
			return nil, fmt.Errorf("look up the commits of %s %s/%s: %w", o.GroupResource, o.Namespace, o.Name, err)
		}
		stored, err := decode[objectRow](row)
		if err != nil {
			logUnreadable(ctx, err)
			continue
		}
		entries = append(entries, stored.Entry)
	}
	return entries, nil
}

// logUnreadable logs a row that cannot be decoded. It is skipped, so that it does not block pushes, and expires.
func logUnreadable(ctx context.Context, err error) {
	klog.FromContext(ctx).Error(err, "Failed to decode a row of the commit index")
}

// notify adds the objects of recorded entries to those that Run reports.
func (i *Index) notify(entries []Entry) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.recorded != nil {
		for _, entry := range entries {
			i.recorded.Insert(entry.Object)
		}
	}
	if i.added += len(entries); i.added > i.capacity/trimShare {
		i.trimPending = true
	}
	i.trigger()
}

// trigger starts a pass of Run.
func (i *Index) trigger() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}
