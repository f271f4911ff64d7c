// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"fmt"
	"testing"
)

// objects is the size of the population, and namespaceSize the number of them in a namespace.
const objects, namespaceSize = 1_000, 250

// BenchmarkPeers measures the server and GitOps Reverser in one cluster.
func BenchmarkPeers(b *testing.B) {
	s := newTestCluster(b)
	s.stopAll(b)
	s.Grow(b, objects)
	measure := func(name string, run func(*testing.B)) {
		b.Run(fmt.Sprintf("%s/objects=%d", name, objects), func(b *testing.B) {
			for b.Loop() {
				run(b)
			}
			b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
		})
	}
	measure("Seed", s.seed)
	measure("Burst", s.burst)
	measure("Change", s.change)
	measure("Rest", s.rest)
	measure("Outage", s.outage)
}

// report reports a figure of both tools, and the ratio of the server's to the peer's. The figure is that of the side with a number.
func (s *testCluster) report(b *testing.B, unit string, figure func(number int) float64) {
	b.Helper()
	own, peer := figure(0), figure(1)
	b.ReportMetric(own, s.sides[0].name()+"-"+unit)
	b.ReportMetric(peer, s.sides[1].name()+"-"+unit)
	if peer > 0 {
		b.ReportMetric(own/peer, unit+"/"+s.sides[1].name())
	}
}
