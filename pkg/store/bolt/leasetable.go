// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// A lease record holds the time to live in seconds and the expiry in nanoseconds
// since 1970, eight bytes each.

func encodeLease(ttl, expiry int64) []byte {
	return append(putInt64(ttl), putInt64(expiry)...)
}

func decodeLease(record []byte) (ttl, expiry int64) {
	if len(record) < 16 {
		return 0, 0
	}
	return getInt64(record), getInt64(record[8:])
}

// leaseTerm is the duration of a lease.
type leaseTerm struct {
	// ttl is in seconds.
	ttl int64
	// expiry is the time in the file, deadline the same by the process's monotonic clock.
	expiry   int64
	deadline time.Time
}

// leaseTable holds the committed leases.
type leaseTable struct {
	clock clock.Clock
	// changed is signalled if the next deadline may have changed.
	changed chan struct{}

	mu    sync.Mutex
	terms map[int64]leaseTerm
}

// loadLeases reads the leases of a file. Each expires within its time to live from now, even if the clock has changed
// while the file was closed.
func loadLeases(s snapshot, c clock.Clock) (*leaseTable, error) {
	table := &leaseTable{clock: c, changed: make(chan struct{}, 1), terms: map[int64]leaseTerm{}}
	now := c.Now()
	err := s.leases.ForEach(func(id, record []byte) error {
		ttl, expiry := decodeLease(record)
		if ttl == 0 {
			return fmt.Errorf("lease %x: %w", getInt64(id), errCorrupt)
		}
		left := min(time.Unix(0, expiry).Sub(now), seconds(ttl))
		table.terms[getInt64(id)] = leaseTerm{ttl: ttl, expiry: expiry, deadline: now.Add(left)}
		return nil
	})
	return table, err
}

// longestTerm keeps every expiry within the nanoseconds that 64 bits can represent.
const longestTerm = 100 * 365 * 24 * time.Hour

// seconds returns a duration of n seconds, at most longestTerm.
func seconds(n int64) time.Duration {
	return time.Duration(min(n, int64(longestTerm/time.Second))) * time.Second
}

func (t *leaseTable) get(id int64) (leaseTerm, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	term, found := t.terms[id]
	return term, found
}

// ids returns the IDs of all leases in order.
func (t *leaseTable) ids() []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.terms))
}

func (t *leaseTable) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.terms)
}

// due returns the leases whose deadline has passed, with their expiry, and the
// time to the next deadline.
func (t *leaseTable) due() (due map[int64]int64, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	due, next = map[int64]int64{}, time.Hour
	for id, term := range t.terms {
		if left := term.deadline.Sub(now); left <= 0 {
			due[id] = term.expiry
		} else {
			next = min(next, left)
		}
	}
	return due, next
}

func (t *leaseTable) update(change func(terms map[int64]leaseTerm)) {
	t.mu.Lock()
	change(t.terms)
	t.mu.Unlock()
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// setLease writes a lease that starts now.
func (w *writer) setLease(id, ttl int64) error {
	table := w.terms
	deadline := table.clock.Now().Add(seconds(ttl))
	expiry := deadline.UnixNano()
	w.changed = true
	if err := w.leases.Put(putInt64(id), encodeLease(ttl, expiry)); err != nil {
		return fmt.Errorf("writing lease %x: %w", id, err)
	}
	w.committed = append(w.committed, func() {
		table.update(func(terms map[int64]leaseTerm) {
			terms[id] = leaseTerm{ttl: ttl, expiry: expiry, deadline: deadline}
		})
	})
	return nil
}

// dropLease removes a lease.
func (w *writer) dropLease(id int64) error {
	w.changed = true
	if err := w.leases.Delete(putInt64(id)); err != nil {
		return fmt.Errorf("removing lease %x: %w", id, err)
	}
	w.committed = append(w.committed, func() {
		w.terms.update(func(terms map[int64]leaseTerm) { delete(terms, id) })
	})
	return nil
}
