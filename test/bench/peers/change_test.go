// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"context"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/test/bench/samples"
)

const (
	// changeRounds is the number of measured pairs of changes.
	changeRounds = 5
	// pauseLength is the pause before each pair, which is longer than GitOps Reverser waits between two pushes.
	pauseLength = 6 * time.Second
)

// change measures the time from the request of a change until the branch has it: of a change after a pause, and of a second one that is
// made when all branches have the first. All tools run, and mirror the same changes.
func (s *testCluster) change(b *testing.B) {
	s.stopAll(b)
	s.reverser.window(b, smallestWindow)
	s.together(b)
	first, second := make([][]time.Duration, len(s.sides)), make([][]time.Duration, len(s.sides))
	for round := range changeRounds {
		pause(b, pauseLength)
		for _, took := range [][][]time.Duration{first, second} {
			for number, latency := range s.changeOnce(b, warmUpChanges+round) {
				took[number] = append(took[number], latency)
			}
		}
	}
	s.report(b, "p50-ms", func(number int) float64 { return samples.Milliseconds(samples.Quantile(first[number], 0.5)) })
	s.report(b, "max-ms", func(number int) float64 { return samples.Milliseconds(slices.Max(first[number])) })
	s.report(b, "next-p50-ms", func(number int) float64 { return samples.Milliseconds(samples.Quantile(second[number], 0.5)) })
	s.report(b, "next-max-ms", func(number int) float64 { return samples.Milliseconds(slices.Max(second[number])) })
}

// changeOnce changes an object and returns how long each of the tools took, arrivalLimit if the change has not arrived by then.
func (s *testCluster) changeOnce(b *testing.B, number int) []time.Duration {
	b.Helper()
	tips, took := make([]string, len(s.sides)), make([]time.Duration, len(s.sides))
	for i, each := range s.sides {
		tips[i] = each.Tip()
	}
	began := time.Now()
	object, err := s.UpdateAs(b.Context(), s.writers[0], number)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), arrivalLimit)
	defer cancel()
	var group errgroup.Group
	for i, each := range s.sides {
		group.Go(func() error {
			at, err := each.arrived(ctx, tips[i], object)
			took[i] = at.Sub(began)
			if ctx.Err() != nil {
				b.Logf("%s: change of %s: %v", each.name(), object.Name, err)
				took[i], err = arrivalLimit, nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return took
}

// pause waits without sending requests.
func pause(b *testing.B, length time.Duration) {
	b.Helper()
	select {
	case <-time.After(length):
	case <-b.Context().Done():
		b.Fatal(context.Cause(b.Context()))
	}
}
