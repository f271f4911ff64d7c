// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"context"
	"strings"
	"testing"
	"time"
)

// seed measures the time from the creation of the rule and what it refers to until the branch of an empty repository has all objects.
func (s *testCluster) seed(b *testing.B) {
	took := make([]float64, len(s.sides))
	for number, each := range s.sides {
		s.stopAll(b)
		each.start(b)
		each.forget(b)
		began := time.Now()
		each.newRepository(b)
		took[number] = each.complete(b).Sub(began).Seconds()
		each.caughtUp(b)
	}
	s.report(b, "seed-s", func(number int) float64 { return took[number] })
}

// complete waits until the branch has a file for each object, and returns the time.
func (s *side) complete(b *testing.B) time.Time {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), deadline)
	defer cancel()
	for tip := ""; ; {
		next, at, err := s.Moved(ctx, tip)
		if err != nil {
			b.Fatalf("%s has not mirrored everything: %v", s.name(), err)
		}
		// There are other files, too, such as those of the ConfigMap kube-root-ca.crt.
		if strings.Count(s.Git(b, "ls-tree", "-r", "--name-only", next), "/settings-") >= s.cluster.Size {
			return at
		}
		tip = next
	}
}
