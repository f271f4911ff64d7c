// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const crowd = 1000

// BenchmarkAtRest measures the memory of 1000 workloads of 10 environments.
func BenchmarkAtRest(b *testing.B) {
	for range b.N {
		s := newFixture(b)
		s.crowd()
		before := heap()
		s.runs()
		b.ReportMetric(float64(heap()-before)/crowd, "B/workload")
	}
}

// BenchmarkOf measures Of for an environment with 100 of 1000 workloads.
func BenchmarkOf(b *testing.B) {
	s := newFixture(b)
	s.crowd()
	s.runs()
	b.ReportAllocs()
	for b.Loop() {
		if count, _ := s.watcher.Of(s.environment); count.Total != crowd/10 {
			b.Fatalf("%v", count)
		}
	}
}

// crowd adds workloads, a tenth of them of the environment.
func (s *fixture) crowd() {
	s.Helper()
	for i := range crowd {
		o := s.mine(strings.Replace(stuck, "name: web", fmt.Sprintf("name: web-%d", i), 1))
		if team := i % 10; team > 0 {
			labels := o.GetLabels()
			labels[v1alpha1.LabelEnvironmentUID] = fmt.Sprintf("%d%s", team, labels[v1alpha1.LabelEnvironmentUID])
			o.SetLabels(labels)
		}
		s.create(o)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
