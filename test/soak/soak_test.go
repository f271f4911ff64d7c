// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"flag"
	"math/rand/v2"
	"os/exec"
	"testing"
	"time"
)

var (
	minutes = flag.Int("minutes", 1, "duration of the work and the faults; with 1, a few faults happen once")
	seed    = flag.Uint64("seed", 0, "seed of the random generator; 0 for a random one")
)

// foreignAuthor is the author of commits of another writer, foreignPause the pause between them.
const (
	foreignAuthor = "Jane"
	foreignPause  = 2 * time.Second
)

// TestSoak lets users work while one or two things at a time fail, and checks at the end that everything is equal.
func TestSoak(t *testing.T) {
	t.Parallel()
	chosen := *seed
	if chosen == 0 {
		chosen = rand.Uint64()
	}
	t.Logf("seed %d, %d minutes; the seed determines the changes and the order of the faults, but not their timing", chosen, *minutes)
	s := newSoak(t)
	s.waitEqual(t, "at the start")
	w := s.startWork(t.Context(), chosen)
	r := &run{soak: s, work: w, random: rand.New(rand.NewPCG(chosen, chosen)), samples: &samples{first: map[string]time.Time{}}, counts: map[string]int{}}
	if *minutes <= 1 {
		r.brief(t)
	} else {
		r.long(t, time.Duration(*minutes)*time.Minute)
	}
	w.end()
	s.waitEqual(t, "at the end")
	s.checkHistory(t, r)
	s.checkNotifications(t, r)
	r.report(t)
}

// runShell runs a script of a shell.
func runShell(ctx context.Context, script string) error {
	return exec.CommandContext(ctx, "sh", "-c", script).Run()
}

// pauseFor waits, or until ctx ends.
func pauseFor(ctx context.Context, duration time.Duration) {
	select {
	case <-time.After(duration):
	case <-ctx.Done():
	}
}
