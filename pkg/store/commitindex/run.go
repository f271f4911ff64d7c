// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commitindex

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// MaxAge is how long an entry is stored.
	MaxAge = 7 * 24 * time.Hour
	// MaxPerObject is the number of entries stored of one object, the newest.
	MaxPerObject = 100
	// DefaultCapacity is the number of entries stored of all objects, the newest. Up to a tenth more are stored until the
	// table is trimmed.
	DefaultCapacity = 20_000
	// trimShare is the part of the capacity that may be added before the table is trimmed: a tenth.
	trimShare = 10
	// maintainInterval is how often Run retries what failed, and deletes what has expired.
	maintainInterval = time.Minute
)

// Run stores the scope, trims the table and calls recorded with the objects that have new entries, from one goroutine, until
// ctx ends. Only one Run may be active.
func (i *Index) Run(ctx context.Context, recorded func([]Object)) {
	i.report(sets.New[Object]())
	defer i.report(nil)
	ticker := i.clock.NewTicker(maintainInterval)
	defer ticker.Stop()
	trimmed := time.Time{}
	for {
		if objects := i.takeRecorded(); len(objects) > 0 {
			recorded(objects)
		}
		due := i.clock.Since(trimmed) >= time.Hour
		if err := i.maintain(ctx, due); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to maintain the commit index", "retryAfter", maintainInterval)
		} else if due {
			trimmed = i.clock.Now()
		}
		select {
		case <-i.wake:
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
	}
}

// report begins to collect objects with new entries in a set, or stops if the set is nil.
func (i *Index) report(into sets.Set[Object]) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.recorded = into
}

// takeRecorded removes and returns the objects with new entries.
func (i *Index) takeRecorded() []Object {
	i.mu.Lock()
	defer i.mu.Unlock()
	objects := i.recorded.UnsortedList()
	clear(i.recorded)
	return objects
}

// maintain stores the scope if it has changed, and trims the table if that is pending or due.
func (i *Index) maintain(ctx context.Context, due bool) error {
	i.mu.Lock()
	scope, scopeSet, unsaved, trim := i.scope, i.scopeSet, i.scopeUnsaved, i.trimPending
	i.scopeUnsaved, i.trimPending = false, false
	if trim || due {
		i.added = 0
	}
	i.mu.Unlock()
	if unsaved {
		if err := i.table.Put(ctx, encode(scopeKey, scope)); err != nil {
			i.retry(true, trim)
			return fmt.Errorf("store the scope of the commit index: %w", err)
		}
	}
	if !trim && !due {
		return nil
	}
	if err := i.trim(ctx, func(o Object) bool { return !scopeSet || scope.includes(o) }); err != nil {
		i.retry(false, true)
		return err
	}
	return nil
}

// retry marks what failed, for the next tick of Run.
func (i *Index) retry(save, trim bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.scopeUnsaved, i.trimPending = i.scopeUnsaved || save, i.trimPending || trim
}

// trim deletes rows that are too old, too many, out of scope or unreadable.
func (i *Index) trim(ctx context.Context, inScope func(Object) bool) error {
	oldest := i.clock.Now().Add(-MaxAge)
	pushes, err := i.expiredPushes(ctx, oldest)
	if err != nil {
		return err
	}
	entries, err := i.staleEntries(ctx, func(row objectRow) bool {
		return !row.At.Before(oldest) && inScope(row.Entry.Object)
	})
	if err != nil {
		return err
	}
	// One transaction for each chunk, so that other writers are not blocked for long.
	for chunk := range slices.Chunk(append(pushes, entries...), table.MaxAtomicRows) {
		if err := i.table.Delete(ctx, chunk...); err != nil {
			return fmt.Errorf("trim the commit index: %w", err)
		}
	}
	return nil
}

// expiredPushes returns the keys of prepared entries that were never recorded.
func (i *Index) expiredPushes(ctx context.Context, oldest time.Time) ([]string, error) {
	var expired []string
	for row, err := range i.table.Scan(ctx, pushesPrefix) {
		if err != nil {
			return nil, fmt.Errorf("list prepared entries: %w", err)
		}
		if push, err := decode[pushRow](row); err != nil || push.At.Before(oldest) {
			expired = append(expired, row.Key)
		}
	}
	return expired, nil
}

// staleEntries returns the keys of entries that keep rejects, or that exceed MaxPerObject or the capacity.
func (i *Index) staleEntries(ctx context.Context, keep func(objectRow) bool) ([]string, error) {
	var excess []string
	var kept, ofObject []version
	prefix := ""
	for row, err := range i.table.Scan(ctx, objectsPrefix) {
		if err != nil {
			return nil, fmt.Errorf("list entries: %w", err)
		}
		stored, err := decode[objectRow](row)
		if err != nil || !keep(stored) {
			excess = append(excess, row.Key)
			continue
		}
		if next := objectPrefix(stored.Entry.Object); next != prefix {
			kept = append(kept, newest(ofObject, MaxPerObject, &excess)...)
			prefix, ofObject = next, nil
		}
		ofObject = append(ofObject, version{row.Key, stored.At, stored.Entry.Last})
	}
	kept = append(kept, newest(ofObject, MaxPerObject, &excess)...)
	newest(kept, i.capacity, &excess)
	return excess, nil
}

// version is the age of a row: when it was recorded, and the last resourceVersion it holds.
type version struct {
	key  string
	at   time.Time
	last string
}

// newest returns the newest rows up to a limit, and adds the keys of the others to excess.
func newest(rows []version, limit int, excess *[]string) []version {
	if len(rows) <= limit {
		return rows
	}
	slices.SortFunc(rows, func(a, b version) int {
		return cmp.Or(b.at.Compare(a.at), Compare(b.last, a.last), strings.Compare(a.key, b.key))
	})
	for _, row := range rows[limit:] {
		*excess = append(*excess, row.key)
	}
	return rows[:limit]
}
