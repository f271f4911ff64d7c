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
	// MaxAge is how long a landing is kept.
	MaxAge = 7 * 24 * time.Hour
	// MaxPerObject is how many landings of one object are kept, the newest.
	MaxPerObject = 100
	// DefaultCapacity is how many landings are kept of all objects, the newest. There may be a tenth more until they are trimmed.
	DefaultCapacity = 20_000
	// trimShare is which part of the capacity may be added before the table is trimmed.
	trimShare = 10
	// tendInterval is how often Run looks without cause, for what is too old and for what has failed.
	tendInterval = time.Minute
)

// Run keeps the log in order until ctx ends, and calls landed with the objects of which something has landed, from one
// goroutine. One Run at a time.
func (l *Log) Run(ctx context.Context, landed func([]Object)) {
	l.listen(sets.New[Object]())
	defer l.listen(nil)
	ticker := l.clock.NewTicker(tendInterval)
	defer ticker.Stop()
	trimmed := time.Time{}
	for {
		if objects := l.news(); len(objects) > 0 {
			landed(objects)
		}
		due := l.clock.Since(trimmed) >= time.Hour
		if err := l.tend(ctx, due); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "What is known of commits cannot be put in order, trying again", "retryAfter", tendInterval)
		} else if due {
			trimmed = l.clock.Now()
		}
		select {
		case <-l.wake:
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
	}
}

// listen begins to remember what is to be told, or ends it.
func (l *Log) listen(landed sets.Set[Object]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.landed = landed
}

// news returns what is to be told.
func (l *Log) news() []Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	objects := l.landed.UnsortedList()
	clear(l.landed)
	return objects
}

// tend saves what is not saved, and trims the table when there is cause, or it is due.
func (l *Log) tend(ctx context.Context, due bool) error {
	l.mu.Lock()
	interest, followed, unsaved, untrimmed := l.interest, l.followed, l.unsaved, l.untrimmed
	l.unsaved, l.untrimmed = false, false
	if untrimmed || due {
		l.added = 0
	}
	l.mu.Unlock()
	if unsaved {
		if err := l.table.Put(ctx, encode(interestKey, interest)); err != nil {
			l.again(true, untrimmed)
			return fmt.Errorf("note whose commits are wanted: %w", err)
		}
	}
	if !untrimmed && !due {
		return nil
	}
	if err := l.trim(ctx, func(o Object) bool { return !followed || interest.includes(o) }); err != nil {
		l.again(false, true)
		return err
	}
	return nil
}

// again has done at another time what has failed. It does not wake Run, whose ticker does.
func (l *Log) again(unsaved, untrimmed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsaved, l.untrimmed = l.unsaved || unsaved, l.untrimmed || untrimmed
}

// trim removes what is too old or too much, and what nobody cares for. A row that cannot be read goes as well.
func (l *Log) trim(ctx context.Context, wanted func(Object) bool) error {
	oldest := l.clock.Now().Add(-MaxAge)
	pushes, err := l.oldPushes(ctx, oldest)
	if err != nil {
		return err
	}
	landings, err := l.oldLandings(ctx, func(row objectRow) bool {
		return !row.At.Before(oldest) && wanted(row.Landing.Object)
	})
	if err != nil {
		return err
	}
	// A transaction at a time, so that others have their turn.
	for some := range slices.Chunk(append(pushes, landings...), table.MaxAtomicRows) {
		if err := l.table.Delete(ctx, some...); err != nil {
			return fmt.Errorf("remove what is kept of commits for too long: %w", err)
		}
	}
	return nil
}

// oldPushes returns the keys of what never landed.
func (l *Log) oldPushes(ctx context.Context, oldest time.Time) ([]string, error) {
	var gone []string
	for row, err := range l.table.Scan(ctx, pushesPrefix) {
		if err != nil {
			return nil, fmt.Errorf("look for old pushes: %w", err)
		}
		if push, err := decode[pushRow](row); err != nil || push.At.Before(oldest) {
			gone = append(gone, row.Key)
		}
	}
	return gone, nil
}

// oldLandings returns the keys of what is not to be kept, and of what is more than there is room for.
func (l *Log) oldLandings(ctx context.Context, keep func(objectRow) bool) ([]string, error) {
	var gone []string
	var kept, ofObject []aged
	prefix := ""
	for row, err := range l.table.Scan(ctx, objectsPrefix) {
		if err != nil {
			return nil, fmt.Errorf("look for old landings: %w", err)
		}
		stored, err := decode[objectRow](row)
		if err != nil || !keep(stored) {
			gone = append(gone, row.Key)
			continue
		}
		if next := objectPrefix(stored.Landing.Object); next != prefix {
			kept = append(kept, newest(ofObject, MaxPerObject, &gone)...)
			prefix, ofObject = next, nil
		}
		ofObject = append(ofObject, aged{row.Key, stored.At, stored.Landing.Last})
	}
	kept = append(kept, newest(ofObject, MaxPerObject, &gone)...)
	newest(kept, l.capacity, &gone)
	return gone, nil
}

// aged is a row, when it was written, and the resourceVersion that it tells of.
type aged struct {
	key  string
	at   time.Time
	last string
}

// newest returns the newest of rows, and adds the keys of the others to those that go.
func newest(rows []aged, limit int, gone *[]string) []aged {
	if len(rows) <= limit {
		return rows
	}
	slices.SortFunc(rows, func(a, b aged) int {
		return cmp.Or(b.at.Compare(a.at), Compare(b.last, a.last), strings.Compare(a.key, b.key))
	})
	for _, row := range rows[limit:] {
		*gone = append(*gone, row.key)
	}
	return rows[:limit]
}
