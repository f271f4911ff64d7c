// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/notification/ledger"
)

// changed are the parts of a sink's contents that are not stored yet.
type changed struct {
	state, pending, sending        bool
	found, ended, threads, expired sets.Set[string]
}

func newChanged() changed {
	return changed{found: sets.New[string](), ended: sets.New[string](), threads: sets.New[string](), expired: sets.New[string]()}
}

// take returns what has to be stored, and considers it stored. After an error, the caller calls restore.
func (q *queue) take() *ledger.Writes {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := &ledger.Writes{Ended: sets.List(q.changed.ended), Expired: sets.List(q.changed.expired)}
	if q.changed.state {
		w.State = q.copyOfState()
	}
	if q.changed.pending {
		pending := q.Pending.Clone()
		w.Pending = &pending
	}
	if q.changed.sending {
		w.Sending, w.Sent = q.Sending, q.Sending == nil
	}
	for _, key := range sets.List(q.changed.found) {
		w.Found = append(w.Found, *q.Found[key])
	}
	for _, key := range sets.List(q.changed.threads) {
		w.Threads = append(w.Threads, *q.Threads[key])
	}
	q.changed = newChanged()
	return w
}

// copyOfState returns the state for a write.
func (q *queue) copyOfState() *ledger.State {
	state := q.State
	state.Since, state.Partial = maps.Clone(state.Since), slices.Clone(state.Partial)
	return &state
}

// restore notes that a write failed.
func (q *queue) restore(w *ledger.Writes) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.state = q.changed.state || w.State != nil
	q.changed.pending = q.changed.pending || w.Pending != nil
	q.changed.sending = q.changed.sending || w.Sending != nil || w.Sent
	for _, found := range w.Found {
		if q.Found[found.Key] != nil {
			q.changed.found.Insert(found.Key)
		}
	}
	for _, key := range w.Ended {
		if q.Found[key] == nil {
			q.changed.ended.Insert(key)
		}
	}
	for _, thread := range w.Threads {
		if q.Threads[thread.Key] != nil {
			q.changed.threads.Insert(thread.Key)
		}
	}
	for _, key := range w.Expired {
		if q.Threads[key] == nil {
			q.changed.expired.Insert(key)
		}
	}
}
