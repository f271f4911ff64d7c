// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	syncstatuspending "github.com/configbutler/slipstream/pkg/syncstatus/pending"
	"github.com/configbutler/slipstream/test/testkit"
)

// manyEvents returns events of a number of objects of a namespace.
func manyEvents(namespace string, count int) []syncstatuspending.Event {
	events := make([]syncstatuspending.Event, count)
	for n := range events {
		events[n] = changed(namespace, fmt.Sprintf("w%05d", n), n+1)
	}
	return events
}

func TestOverflowDropsTheLargestBatch(t *testing.T) {
	s := newFixture(t)
	s.capacity = 10
	i := s.open()
	before := metric(t, "resyncs_total", string(syncstatuspending.Overflow))
	i.Add(manyEvents("shop", 6)...)
	i.Add(manyEvents("bank", 4)...)
	i.Add(changed("shop", "w00001", 99), changed("bank", "w00001", 99))
	if got := metric(t, "resyncs_total", string(syncstatuspending.Overflow)) - before; got != 0 {
		t.Fatalf("%v overflows at the capacity", got)
	}
	i.Add(changed("bank", "w00004", 100))
	i.Add(changed("shop", "w00001", 101), changed("shop", "new", 102))
	if got := metric(t, "resyncs_total", string(syncstatuspending.Overflow)) - before; got != 1 {
		t.Errorf("%v overflows were counted", got)
	}
	if got := metric(t, "objects", ""); got != 5 {
		t.Errorf("%v objects are counted", got)
	}
	for range 2 {
		shop, bank := s.closed(i, "shop"), s.closed(i, "bank")
		if !shop.Resync || len(shop.Changes) > 0 || !shop.FirstSeen.Equal(testkit.Noon) {
			t.Errorf("shop: %+v", shop)
		}
		if bank.Resync {
			t.Error("bank is compared as well")
		}
		expect(t, "bank", names(bank.Changes), []string{"w00000 1 x1", "w00001 99 x2", "w00002 3 x1", "w00003 4 x1", "w00004 100 x1"})
		i = s.open()
	}
	s.done(i, s.closed(i, "shop"))
	i.Add(changed("shop", "web", 1))
	if after := s.closed(i, "shop"); after.Resync || len(after.Changes) != 1 {
		t.Errorf("the next batch has overflowed: %+v", after)
	}
}

// TestOverflowOfWrittenChanges overflows a batch whose changes have been written.
func TestOverflowOfWrittenChanges(t *testing.T) {
	s := newFixture(t)
	s.capacity = 10
	i := s.open()
	var overflowed atomic.Value
	notices := noNotices()
	notices.Overflowed = func(namespace string) { overflowed.Store(namespace) }
	s.run(i, notices)
	i.Add(manyEvents("shop", 10)...)
	s.eventually("the changes are written", func() bool { return len(s.rows()) == 10 })
	i.Add(changed("bank", "web", 1))
	s.eventually("one row is left", func() bool {
		return slices.Equal(s.rows(), []string{"bank/#/apps/Deployment/web", "shop/#"})
	})
	if got := overflowed.Load(); got != "shop" {
		t.Errorf("notified of %v", got)
	}
	if batch := s.closed(s.open(), "shop"); !batch.Resync || len(batch.Changes) > 0 {
		t.Errorf("after a restart: %+v", batch)
	}
}

// TestClosedBatchesDoNotOverflow has closed batches that use the whole capacity.
func TestClosedBatchesDoNotOverflow(t *testing.T) {
	s := newFixture(t)
	s.capacity = 10
	i := s.open()
	i.Add(manyEvents("shop", 10)...)
	closed := s.closed(i, "shop")
	i.Add(changed("bank", "web", 1), changed("shop", "web", 2), changed("bank", "api", 3))
	if again := s.closed(i, "shop"); len(again.Changes) != 10 || again.Resync || again.ID != closed.ID {
		t.Errorf("a closed batch has changed: %+v", again)
	}
	if bank := s.closed(i, "bank"); !bank.Resync || len(bank.Changes) != 0 {
		t.Errorf("bank: %+v", bank)
	}
	s.done(i, closed)
	if next := s.closed(i, "shop"); !next.Resync {
		t.Errorf("the next batch of shop: %+v", next)
	}
	i.Add(manyEvents("mill", 10)...)
	if mill := s.closed(i, "mill"); mill.Resync || len(mill.Changes) != 10 {
		t.Errorf("the capacity is exceeded after Done: %+v", mill)
	}
}

// TestFloodOfOneNamespace exceeds the default capacity with one namespace. The others must keep their changes.
func TestFloodOfOneNamespace(t *testing.T) {
	s := newFixture(t)
	i := s.open()
	if got := metric(t, "capacity", ""); got != syncstatuspending.DefaultCapacity {
		t.Errorf("the capacity is %v", got)
	}
	for n := range 20 {
		i.Add(manyEvents(fmt.Sprintf("quiet-%d", n), 100)...)
	}
	for _, event := range manyEvents("flood", 50_000) {
		i.Add(event)
	}
	if flood := s.closed(i, "flood"); !flood.Resync {
		t.Errorf("the flood has %d changes", len(flood.Changes))
	}
	for n := range 20 {
		if quiet := s.closed(i, fmt.Sprintf("quiet-%d", n)); quiet.Resync || len(quiet.Changes) != 100 {
			t.Errorf("%s has %d changes, resync: %v", quiet.Namespace, len(quiet.Changes), quiet.Resync)
		}
	}
}

func TestFillingIsNotifiedOnce(t *testing.T) {
	s := newFixture(t)
	s.capacity = 100
	i := s.open()
	var notified atomic.Int64
	notices := noNotices()
	notices.Filling = func(changes, capacity int) {
		if changes < 70 || capacity != 100 {
			t.Errorf("notified of %d of %d", changes, capacity)
		}
		notified.Add(1)
	}
	expected := func(what string, of *syncstatuspending.Intake, want int64) {
		t.Helper()
		s.run(of, notices)() // Run publishes notices before it checks whether ctx has ended.
		if got := notified.Load(); got != want {
			t.Errorf("%s: notified %d times, want %d", what, got, want)
		}
	}
	i.Add(manyEvents("shop", 69)...)
	expected("69 %", i, 0)
	i.Add(manyEvents("bank", 10)...)
	if got := metric(t, "objects", ""); got != 79 {
		t.Errorf("%v objects are counted", got)
	}
	expected("79 %", i, 1)
	expected("still 79 %", i, 1)
	s.done(i, s.closed(i, "bank"))
	i.Add(manyEvents("bank", 10)...)
	expected("79 % again, from 69 %", i, 1)
	s.done(i, s.closed(i, "shop"))
	i.Add(manyEvents("shop", 69)...)
	expected("79 % again, from 10 %", i, 2)
	i.Add(manyEvents("mill", 22)...)
	expected("an overflow to 32 %", i, 2)
	s.done(i, s.closed(i, "shop"))
	i.Add(manyEvents("shop", 60)...)
	expected("92 %, from 32 %", i, 3)
	expected("92 % after a start", s.open(), 4)
}

func TestBusiest(t *testing.T) {
	i := newFixture(t).open()
	i.Add(manyEvents("shop", 3)...)
	i.Add(manyEvents("bank", 5)...)
	i.Add(manyEvents("mill", 3)...)
	i.Resync("farm", syncstatuspending.Relisted)
	expect(t, "two", i.Busiest(2), []string{"bank", "mill"})
	expect(t, "all that have changes", i.Busiest(10), []string{"bank", "mill", "shop"})
}

func TestDeduplicatedEventsAreCounted(t *testing.T) {
	s := newFixture(t)
	s.capacity = 3
	i := s.open()
	deduplicated, closed := metric(t, "events_deduplicated_total", ""), metric(t, "batches_closed_total", "")
	i.Add(changed("shop", "web", 1), changed("shop", "api", 2), changed("shop", "web", 3), changed("shop", "web", 3))
	if got := metric(t, "events_deduplicated_total", "") - deduplicated; got != 2 {
		t.Errorf("%v events were deduplicated", got)
	}
	i.Add(manyEvents("shop", 4)...) // The second has the namespace compared instead, and goes with it like those after it.
	if got := metric(t, "events_deduplicated_total", "") - deduplicated; got != 5 {
		t.Errorf("%v events were deduplicated after the overflow", got)
	}
	s.closed(i, "shop")
	s.done(i, s.closed(i, "shop"))
	if got := metric(t, "batches_closed_total", "") - closed; got != 1 {
		t.Errorf("%v batches were closed", got)
	}
}
