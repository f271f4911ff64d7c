// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// outageLength is how long the remotes cannot be reached.
	outageLength = time.Minute
	// outageLimit is how long after that a change counts as missing.
	outageLimit = 20 * time.Second
)

// outage makes changes while the remotes cannot be reached for a minute, and measures how long after their return the branch has all of them.
// All tools run. Another object is changed right after the return, because GitOps Reverser retries a push with the next change.
func (s *testCluster) outage(b *testing.B) {
	s.together(b)
	began := time.Now()
	s.sever(true)
	written := s.write(b, len(s.writers), burstChanges, 0)
	pause(b, time.Until(began.Add(outageLength)))
	s.sever(false)
	returned := time.Now()
	last, err := s.UpdateAs(b.Context(), s.writers[0], burstChanges)
	if err != nil {
		b.Fatal(err)
	}
	written = append(written, changed{last, writerName(0)})
	missing, settled := make([]int, len(s.sides)), make([]time.Duration, len(s.sides))
	var group errgroup.Group
	for number, each := range s.sides {
		group.Go(func() error {
			lost, at, err := each.await(b.Context(), written, outageLimit)
			missing[number], settled[number] = lost, at.Sub(returned)
			if lost > 0 {
				settled[number] = outageLimit
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	s.report(b, "settled-s", func(number int) float64 { return settled[number].Seconds() })
	for number, each := range s.sides {
		b.ReportMetric(float64(missing[number]), each.name()+"-missing")
	}
}

// sever makes the remotes of all tools unreachable, or reachable again.
func (s *testCluster) sever(cut bool) {
	for _, each := range s.sides {
		each.remote.Sever(cut)
	}
}
