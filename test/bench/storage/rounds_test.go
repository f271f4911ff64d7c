// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// rounds is the number of rounds of each side.
	rounds = 11
	// roundLength is the duration of a round.
	roundLength = 200 * time.Millisecond
)

// operation is the operation that a worker repeats; n is its number in this round.
type operation func(s *side, worker, n int) error

// compare has workers repeat an operation, alternating between both sides, and reports the medians of the rates and of the
// ratios of neighbouring rounds, because other load on the machine affects both.
func compare(b *testing.B, sides []*side, workers int, do operation) {
	b.Helper()
	var rates [2][]float64
	var ratios []float64
	for b.Loop() {
		for round := range rounds {
			var rate [2]float64
			for i := range sides {
				i = (i + round) % len(sides) // alternate which side is first
				rate[i] = work(b, sides[i], workers, do)
				rates[i] = append(rates[i], rate[i])
			}
			ratios = append(ratios, rate[0]/rate[1])
		}
	}
	b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
	b.ReportMetric(median(rates[0]), "bolt/s")
	b.ReportMetric(median(rates[1]), "etcd/s")
	b.ReportMetric(median(ratios), "bolt/etcd")
}

// work returns the number of operations per second.
func work(b *testing.B, s *side, workers int, do operation) float64 {
	b.Helper()
	var group errgroup.Group
	done := make([]int, workers)
	began := time.Now()
	for worker := range workers {
		group.Go(func() error {
			for done[worker] == 0 || time.Since(began) < roundLength {
				if err := do(s, worker, done[worker]); err != nil {
					return err
				}
				done[worker]++
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatalf("%s: %v", s.name, err)
	}
	total := 0
	for _, each := range done {
		total += each
	}
	return float64(total) / time.Since(began).Seconds()
}

func median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[len(sorted)/2]
}
