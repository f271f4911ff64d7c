// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	syncstatuspending "github.com/configbutler/slipstream/pkg/syncstatus/pending"
	"github.com/configbutler/slipstream/test/testkit"
)

// TestEventsAreWrittenTogether counts transactions.
func TestEventsAreWrittenTogether(t *testing.T) {
	s := newFixture(t)
	i := s.open()
	s.run(i, noNotices())
	i.Add(changed("bank", "web", 0))
	s.eventually("Run waits", s.clock.HasWaiters)
	s.process.Start(0, nil)
	for n := range 1000 {
		i.Add(manyEvents("shop", 100)...)
		i.Add(changed("bank", "web", n+1))
	}
	s.eventually("all rows are written", func() bool { return len(s.rows()) == 101 })
	s.eventually("Run waits", s.clock.HasWaiters)
	if got := s.process.Writes(); got > 2 {
		t.Errorf("101 objects that changed 1000 times took %d transactions", got)
	}
}

// TestRunNotifies checks notices of namespaces with restored batches, and with new ones.
func TestRunNotifies(t *testing.T) {
	s := newFixture(t)
	others := goleak.IgnoreCurrent()
	i := s.open()
	i.Add(changed("shop", "web", 1), changed("bank", "web", 2))
	s.closed(i, "shop")
	s.closed(i, "bank")
	i = s.open()
	opened := make(chan string, 100)
	notices := noNotices()
	notices.Opened = func(namespace string) { opened <- namespace }
	stop := s.run(i, notices)
	next := func(want string) {
		t.Helper()
		s.eventually("a notice of "+want, func() bool {
			select {
			case got := <-opened:
				if got != want {
					t.Errorf("notified of %s, want %s", got, want)
				}
				return true
			default:
				return false
			}
		})
	}
	next("bank")
	next("shop")
	i.Add(changed("mill", "web", 3))
	next("mill")
	i.Add(changed("shop", "web", 4))
	next("shop")
	i.Resync("farm", syncstatuspending.Requested)
	next("farm")
	i.Add(changed("mill", "web", 5), changed("shop", "web", 6))
	stop()
	if len(opened) > 0 {
		t.Errorf("notified of %s as well", <-opened)
	}
	testkit.NoGoroutines(t, others)
}

// TestStoreThatIsFull checks that changes are kept until they can be written.
func TestStoreThatIsFull(t *testing.T) {
	s := newFixture(t)
	i := s.open()
	var blocked, free atomic.Int64
	notices := noNotices()
	notices.Blocked = func(err error) {
		if err == nil {
			free.Add(1)
		} else {
			blocked.Add(1)
		}
	}
	s.full.Store(true)
	s.run(i, notices)
	i.Add(changed("shop", "web", 1))
	s.eventually("the notice that it is blocked", func() bool { return blocked.Load() > 1 })
	if got := metric(t, "blocked", ""); got != 1 {
		t.Errorf("the metric is %v while nothing can be written", got)
	}
	i.Add(changed("shop", "web", 2), changed("shop", "api", 3))
	if batch, some, err := i.Close(t.Context(), "shop"); some || err == nil {
		t.Errorf("a batch was closed that is not durable: %+v", batch)
	}
	i.Add(changed("shop", "web", 4))
	s.full.Store(false)
	s.eventually("the notice that it is not blocked any more", func() bool { return free.Load() == 1 })
	if got := metric(t, "blocked", ""); got != 0 {
		t.Errorf("the metric is %v while everything can be written", got)
	}
	first := s.closed(i, "shop")
	expect(t, "first batch", names(first.Changes), []string{"api 3 x1", "web 2 x2"})
	s.full.Store(true)
	if err := i.Done(t.Context(), first); err == nil {
		t.Error("a batch that is still stored is done")
	}
	if again := s.closed(i, "shop"); again.ID != first.ID {
		t.Errorf("a batch that is not done is not returned again: %+v", again)
	}
	s.full.Store(false)
	s.done(i, first)
	expect(t, "second batch", names(s.closed(i, "shop").Changes), []string{"web 4 x1"})
}

// TestEndOfRunWritesWhatIsLeft checks that Run writes all changes before it returns.
func TestEndOfRunWritesWhatIsLeft(t *testing.T) {
	s := newFixture(t)
	i := s.open()
	stop := s.run(i, noNotices())
	i.Add(manyEvents("shop", 1)...)
	s.eventually("Run waits", s.clock.HasWaiters)
	i.Add(manyEvents("shop", 300)...)
	stop()
	if got := len(s.closed(s.open(), "shop").Changes); got != 300 {
		t.Errorf("%d changes are left", got)
	}
}

// TestConcurrency adds events, and closes and finishes batches concurrently. No event may be lost.
func TestConcurrency(t *testing.T) {
	const writers, each, objects = 8, 2000, 50
	s := newFixture(t)
	i := s.open()
	stop := s.run(i, noNotices())
	var writing errgroup.Group
	var versions atomic.Int64
	for w := range writers {
		writing.Go(func() error {
			for n := range each {
				namespace := fmt.Sprintf("ns-%d", n%3)
				i.Add(by(fmt.Sprintf("user-%d", w), changed(namespace, fmt.Sprintf("w%d-%d", w, n%objects), int(versions.Add(1)))))
			}
			return nil
		})
	}
	var mu sync.Mutex
	events, ids := 0, map[string]bool{}
	recorded := func(batch syncstatuspending.Batch) {
		mu.Lock()
		defer mu.Unlock()
		if ids[batch.ID] || batch.Resync {
			t.Errorf("batch %s a second time, or as a resync: %v", batch.ID, batch.Resync)
		}
		ids[batch.ID] = true
		for _, change := range batch.Changes {
			events += change.Events
		}
	}
	added := make(chan struct{})
	var recording errgroup.Group
	for n := range 3 {
		recording.Go(func() error { return record(s, i, fmt.Sprintf("ns-%d", n), added, recorded) })
	}
	if err := writing.Wait(); err != nil {
		t.Fatal(err)
	}
	close(added)
	if err := recording.Wait(); err != nil {
		t.Fatal(err)
	}
	stop()
	if events != writers*each {
		t.Errorf("%d events in %d batches, want %d", events, len(ids), writers*each)
	}
	if rows := s.rows(); len(rows) > 0 {
		t.Errorf("rows are left: %v", slices.Compact(rows))
	}
	if got := metric(t, "objects", ""); got != 0 {
		t.Errorf("%v objects are counted", got)
	}
}

// record closes and finishes the batches of a namespace until all events have been added and no batch is left.
func record(
	s *fixture, i *syncstatuspending.Intake, namespace string, added <-chan struct{}, recorded func(syncstatuspending.Batch),
) error {
	for {
		over := false
		select {
		case <-added:
			over = true
		default:
		}
		batch, some, err := i.Close(s.Context(), namespace)
		if err != nil {
			return err
		}
		if !some {
			if over {
				return nil
			}
			continue
		}
		recorded(batch)
		if err := i.Done(s.Context(), batch); err != nil {
			return err
		}
	}
}
