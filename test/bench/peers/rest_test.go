// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/bench/samples"
	"github.com/configbutler/slipstream/test/bench/usage"
)

const (
	// restLength is how long the tools rest before they are measured.
	restLength = 65 * time.Second
	// idleLength is how long they are measured.
	idleLength = 10 * time.Second
)

// rest measures the processor time and memory of tools without work. All run at the same time, as each has its own figures.
func (s *testCluster) rest(b *testing.B) {
	s.together(b)
	pause(b, restLength)
	before := make([]time.Duration, len(s.sides))
	for number, each := range s.sides {
		before[number] = usage.CPU(b, each.pid(b))
	}
	pause(b, idleLength)
	s.report(b, "cpu-ms/10s", func(number int) float64 {
		return samples.Milliseconds(usage.CPU(b, s.sides[number].pid(b)) - before[number])
	})
	s.report(b, "rss-MiB", func(number int) float64 { return usage.MiB(b, s.sides[number].pid(b), usage.Resident) })
	s.report(b, "anon-MiB", func(number int) float64 { return usage.MiB(b, s.sides[number].pid(b), usage.Anonymous) })
	b.ReportMetric(usage.MiB(b, s.reverser.redis.PID(b), usage.Resident), "redis-rss-MiB")
}
