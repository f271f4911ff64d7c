// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"sort"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// The newest changes are kept in memory for watches that keep up: at least the
// last feedEvents of them unless they are larger than feedBytes, at most twice
// either. A watch that is further behind reads the log.
const (
	feedEvents = 4096
	feedBytes  = 8 << 20
)

// feed is the committed changes for watches. Its events are shared and never change.
type feed struct {
	mu sync.RWMutex

	// head is the last published revision, compacted the oldest readable one.
	head, compacted int64

	// events are the newest changes in order of revision. They include every change after floor, and may begin with some
	// of floor itself.
	events []*mvccpb.Event
	floor  int64
	bytes  int

	// changed is closed at the next publication.
	changed chan struct{}
}

func newFeed(head, compacted int64) *feed {
	return &feed{head: head, compacted: compacted, floor: head, changed: make(chan struct{})}
}

func (f *feed) revisions() (head, compacted int64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.head, f.compacted
}

// publish adds committed changes and wakes waiting watches.
func (f *feed) publish(events []*mvccpb.Event, head, compacted int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, events...)
	for _, event := range events {
		f.bytes += eventSize(event)
	}
	if compacted > f.compacted {
		f.compact(compacted)
	}
	f.trim()
	f.head, f.compacted = head, compacted
	close(f.changed)
	f.changed = make(chan struct{})
}

// trim drops the oldest events once there are twice as many as should be kept. The rest is moved to new memory, since
// watches may still read the old.
func (f *feed) trim() {
	if len(f.events) <= 2*feedEvents && f.bytes <= 2*feedBytes {
		return
	}
	drop, rest := 0, f.bytes
	for len(f.events)-drop > feedEvents || rest > feedBytes {
		rest -= eventSize(f.events[drop])
		drop++
	}
	f.drop(drop, feedEvents)
}

// compact drops the events that can no longer be requested.
func (f *feed) compact(compacted int64) {
	f.drop(f.search(compacted+1), 0)
}

// drop drops a number of the oldest events, and reserves room for others.
func (f *feed) drop(count, room int) {
	if count == 0 {
		return
	}
	for _, event := range f.events[:count] {
		f.bytes -= eventSize(event)
	}
	f.floor = f.events[count-1].Kv.ModRevision
	f.events = append(make([]*mvccpb.Event, 0, len(f.events)-count+room), f.events[count:]...)
}

// search returns the index of the first event of a revision or after it.
func (f *feed) search(revision int64) int {
	return sort.Search(len(f.events), func(i int) bool { return f.events[i].Kv.ModRevision >= revision })
}

func eventSize(event *mvccpb.Event) int {
	return len(event.Kv.Key) + len(event.Kv.Value) + len(event.GetPrevKv().GetValue())
}

// recent is the newest changes at one point in time.
type recent struct {
	// events are those from the requested revision on. They are complete up to head, unless complete is false: then the
	// log has them.
	events   []*mvccpb.Event
	complete bool
	// head is the last published revision, compacted the oldest readable one.
	head, compacted int64
	// changed is closed once there is more than this.
	changed <-chan struct{}
}

// from returns the changes from a revision on.
func (f *feed) from(revision int64) recent {
	f.mu.RLock()
	defer f.mu.RUnlock()
	r := recent{head: f.head, compacted: f.compacted, changed: f.changed, complete: revision > f.floor}
	if r.complete {
		r.events = f.events[f.search(revision):len(f.events):len(f.events)]
	}
	return r
}
