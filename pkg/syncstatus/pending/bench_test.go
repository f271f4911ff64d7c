// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	syncstatuspending "github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// BenchmarkStorm measures 10 000 updates of 200 objects in 30 seconds of a fake clock, and their batch.
func BenchmarkStorm(b *testing.B) {
	const updates, objects, length = 10_000, 200, 30 * time.Second
	b.ReportAllocs()
	for range b.N {
		s := newFixture(b)
		i := s.open()
		stop, before := s.run(i, noNotices()), heap()
		for n := range updates {
			i.Add(by(fmt.Sprintf("user-%d", n%5), changed("shop", fmt.Sprintf("w%d", n%objects), n+1)))
			s.clock.Step(length / updates)
			for n%(updates/300) == 0 && !s.clock.HasWaiters() {
				runtime.Gosched() // Run is at work.
			}
		}
		b.ReportMetric(float64(heap()-before), "held-B")
		batch := s.closed(i, "shop")
		events := 0
		for _, change := range batch.Changes {
			events += change.Events
		}
		if len(batch.Changes) != objects || events != updates {
			b.Fatalf("%d changes of %d events", len(batch.Changes), events)
		}
		s.done(i, batch)
		stop()
		b.ReportMetric(float64(s.process.Writes()), "transactions/op")
		b.ReportMetric(float64(s.written.Load()), "written-B/op")
	}
}

// BenchmarkFull measures the memory of an intake at its capacity, with the maximum number of authors for each change.
func BenchmarkFull(b *testing.B) {
	for _, authors := range []int{1, 10} {
		b.Run(fmt.Sprintf("authors=%d", authors), func(b *testing.B) {
			for range b.N {
				s := newFixture(b)
				i := s.open()
				before := heap()
				for n := range syncstatuspending.DefaultCapacity * authors {
					user := fmt.Sprintf("user-%d@example.com", n/syncstatuspending.DefaultCapacity)
					i.Add(by(user, changed("shop", fmt.Sprintf("workload-%d", n%syncstatuspending.DefaultCapacity), n+1)))
				}
				b.ReportMetric(float64(heap()-before), "held-B")
				if len(s.closed(i, "shop").Changes) != syncstatuspending.DefaultCapacity {
					b.Fatal("it is not full")
				}
			}
		})
	}
}

// heap returns the size of the live heap.
func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// BenchmarkAdd measures the cost of an event for the caller of Add.
func BenchmarkAdd(b *testing.B) {
	s := newFixture(b)
	i := s.open()
	event := by("jane", changed("shop", "web", 1))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		event.ResourceVersion = fmt.Sprint(n)
		i.Add(event)
	}
}
