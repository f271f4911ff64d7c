// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

var (
	// changes and rate say how much is written at once.
	changes = flag.Int("changes", 400, "how many changes are made to one object in turns")
	rate    = flag.Int("rate", 250, "how many of them are begun in a second")
)

const (
	// atOnce is how many requests the two people have open at the most.
	atOnce = 4
	// admissionShare is how much of what is changed without audit names who did it, at least.
	admissionShare = 0.99
	// sameShare is that where the other one wants the very same. kube-apiserver tries what comes next from the state that it
	// remembers, which may be the one before: then two are admitted to make one change of one state, and none of them is
	// named. On a busy machine that is one in a hundred.
	sameShare = 0.9
)

// turns lets two people change one object in turns, faster than one request takes, so that requests overtake each
// other and the API server repeats those that lose.
func turns(t *testing.T, s *stage) {
	m := s.newMirror(t, "turns", "configmaps")
	m.mustSet(t, m.alice, "shared", "first")
	began := time.Now()
	m.takeTurns(t, "shared", *changes)
	t.Logf("%d changes, %.0f a second", *changes, float64(*changes)/time.Since(began).Seconds())
	m.judgeAll(t, "v1/configmaps", *changes+1, admissionShare)
}

// takeTurns begins changes at a rate, each by the other person than the one before.
func (m *mirror) takeTurns(t *testing.T, name string, count int) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	pace := time.NewTicker(time.Second / time.Duration(*rate))
	defer pace.Stop()
	for i := range count {
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
		by := []*person{m.alice, m.bob}[i%2]
		group.Go(func() error { return m.set(ctx, by, name, fmt.Sprint(i)) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// judgeAll waits for the commits and holds each to the answer that its change was given. A share of them must name who made
// the change, all if the control plane tells exactly; none may name somebody else.
func (m *mirror) judgeAll(t *testing.T, resource string, want int, least float64) {
	t.Helper()
	commits := m.commits(t, resource, want)
	right := 0
	var wrong mistakes
	for _, c := range commits {
		by, written := m.ledger.writes[c.ResourceVersion]
		if !written {
			wrong.add("%s, which nobody wrote", c)
		} else if wrong.judge(c, by, m.exact) {
			right++
		}
	}
	wrong.report(t)
	share := float64(right) / float64(len(commits))
	t.Logf("%d of %d commits name who made the change", right, len(commits))
	if share < least {
		t.Errorf("%.2f %% of the commits name who made the change, want %.0f %%", 100*share, 100*least)
	}
}

// sameContent lets two people write what the other has written before, so that neither content nor name tells them apart,
// and lets the loser of each turn write what is there already, which changes nothing.
func sameContent(t *testing.T, s *stage) {
	m := s.newMirror(t, "same", "configmaps")
	people := []*person{m.alice, m.bob, m.bob, m.alice}
	const rounds = 60
	for i := range rounds {
		by, other := people[i%4], people[(i+2)%4]
		value := []string{"x", "y"}[i%2]
		m.mustSet(t, by, "shared", value)
		m.mustSet(t, other, "shared", value)
	}
	if written := len(m.ledger.writes); written != rounds {
		t.Fatalf("%d versions were written, want %d", written, rounds)
	}
	m.judgeAll(t, "v1/configmaps", rounds, sameShare)
}
