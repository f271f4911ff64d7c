// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"github.com/configbutler/slipstream/test/bench/usage"
	"github.com/configbutler/slipstream/test/devcluster"
)

// most is the size of the largest population. Smaller ones are always measured.
var most = flag.Int("objects", 20_000,
	"objects of the largest population, 20000 or more; the time to the commit is measured there too if it is 50000 or more")

const (
	few          = 200
	idleObjects  = 2_000
	moreObjects  = 5_000
	seedObjects  = 10_000
	largeObjects = 50_000
)

// BenchmarkMirror measures one server with a population that grows between measurements,
// because creating objects takes longer than measuring.
func BenchmarkMirror(b *testing.B) {
	s := newTestCluster(b, devcluster.Options{ServerProgram: usage.Server(b)})
	p := newPopulation(s.core)
	m := s.newMirror(b, "shop")
	p.Grow(b, few)
	m.watch(b)
	m.settled(b, p)
	measure := func(name string, objects int, run func(*testing.B)) {
		b.Run(fmt.Sprintf("%s/objects=%d", name, objects), func(b *testing.B) {
			if p.Size < objects {
				p.Grow(b, objects)
				m.settled(b, p)
			}
			for b.Loop() {
				run(b)
			}
			b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
		})
	}
	latency := &latency{mirror: m, population: p, samples: latencySamples}
	measure("EventToCommit", few, latency.run)
	measure("Idle", idleObjects, func(b *testing.B) { idle(b, m) })
	measure("Sustained", idleObjects, func(b *testing.B) { sustained(b, m, p) })
	measure("EventToCommit", moreObjects, latency.run)
	measure("Seed", seedObjects, func(b *testing.B) { seed(b, m, p) })
	measure("SeedSecrets", seedObjects, func(b *testing.B) { seedSecrets(b, s, p) })
	measure("SecondRun", seedObjects, func(b *testing.B) {
		secondRun(b, m, func(what string, check func(context.Context) error) { eventually(b, what, stateInterval, check) })
	})
	measure("Memory", *most, func(b *testing.B) { held(b, m) })
	if *most >= largeObjects {
		measure("EventToCommit", *most, latency.run)
	}
}
