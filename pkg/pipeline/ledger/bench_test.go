// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// sizes are numbers of objects that a sink has.
var sizes = []int{10_000, 100_000}

// knowing returns a fixture whose sink has a number of objects.
func knowing(b *testing.B, number int) (s *fixture, items []item.Item) {
	b.Helper()
	s = newFixture(b)
	s.maxItems = 1000
	for i := range number {
		items = append(items, version(instance(fmt.Sprintf("workload-%06d", i)), 1))
		s.Upsert(items[i], ledger.Immediate)
	}
	for s.Counts().Pending > 0 {
		s.next()
		s.delivered()
	}
	return s, items
}

// BenchmarkKnown measures an Upsert of an object that the sink has.
func BenchmarkKnown(b *testing.B) {
	for _, number := range sizes {
		b.Run(fmt.Sprintf("objects=%d", number), func(b *testing.B) {
			s, items := knowing(b, number)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				s.Upsert(items[n%number], ledger.Debounced)
				n++
			}
		})
	}
}

// BenchmarkBatch measures a batch of 50 changed objects, up to its delivery.
func BenchmarkBatch(b *testing.B) {
	for _, number := range sizes {
		b.Run(fmt.Sprintf("objects=%d", number), func(b *testing.B) {
			s, items := knowing(b, number)
			s.maxItems = 50
			n := 0
			for b.Loop() {
				for range 50 {
					n++
					s.Upsert(version(items[n%number].Key, n+1), ledger.Immediate)
				}
				s.next()
				s.delivered()
			}
		})
	}
}

// BenchmarkOpen measures opening a ledger, and its memory.
func BenchmarkOpen(b *testing.B) {
	for _, number := range sizes {
		b.Run(fmt.Sprintf("objects=%d", number), func(b *testing.B) {
			s, _ := knowing(b, number)
			for b.Loop() {
				s.Ledger = nil
				before := heap()
				s.open()
				b.ReportMetric(float64(heap()-before)/float64(number), "held-B/object")
			}
			runtime.KeepAlive(s)
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
