// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"sync"
	"time"

	"github.com/configbutler/slipstream/pkg/gitrepo"
)

// record gathers what a GitDestinationStatus tells and the tree does not.
type record struct {
	mu sync.Mutex
	facts
}

// facts is a copy of a record at one moment.
type facts struct {
	lastCommit  gitrepo.Hash
	lastSubject string
	lastPush    time.Time
	retries     int64
	unknown     int64 // changes that nobody is known for

	orphansRemoved int64
	held           map[string]int64 // by type; "" for swept types
	compared       time.Time
	failure        error
	// served says that the branch has been read and written without an error.
	served bool
}

func (r *record) update(change func(*facts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.facts)
}

// current returns the facts.
func (r *record) current() facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.facts
}

// failed notes an error that keeps the destination back. That another writer was faster
// does not: it is tried again at once.
func (r *record) failed(err error) {
	r.update(func(f *facts) {
		f.retries++
		if !errors.Is(err, gitrepo.ErrMoved) {
			f.failure = err
		}
	})
}

// succeeded notes that nothing keeps the destination back. It returns whether that is new.
func (r *record) succeeded() (changed bool) {
	r.update(func(f *facts) {
		changed = f.failure != nil || !f.served
		f.failure, f.served = nil, true
	})
	return changed
}

// pushed notes what the remote has accepted.
func (r *record) pushed(p pushed) {
	r.update(func(f *facts) {
		if p.commits == 0 {
			return
		}
		f.lastCommit, f.lastSubject, f.lastPush = p.last, p.subject, time.Now()
		f.unknown += int64(p.written + p.removed)
	})
}

// compared notes a comparison, and the orphans that it found and that are kept.
func (r *record) compared(of seed, held int) {
	r.update(func(f *facts) {
		f.compared = time.Now()
		f.setHeld(of.resource.String(), held)
	})
}

// swept notes the files of types that are selected no more and that are kept.
func (r *record) swept(held int) {
	r.update(func(f *facts) { f.setHeld("", held) })
}

// setHeld replaces the map rather than changing it: copies of facts share it.
func (f *facts) setHeld(t string, held int) {
	next := map[string]int64{t: int64(held)}
	for other, n := range f.held {
		if other != t {
			next[other] = n
		}
	}
	f.held = next
}

// orphansHeld is the number of files that no object maps to and that are kept.
func (f facts) orphansHeld() int64 {
	var sum int64
	for _, n := range f.held {
		sum += n
	}
	return sum
}

// orphansRemoved notes files that were removed because no object mapped to them.
func (r *record) orphansRemoved(n int) {
	r.update(func(f *facts) { f.orphansRemoved += int64(n) })
}
