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
	// changes and rate are the number and frequency of concurrent changes.
	changes = flag.Int("changes", 400, "number of changes of one object")
	rate    = flag.Int("rate", 250, "number of changes started per second")
)

const (
	// atOnce is the maximum number of open requests.
	atOnce = 4
	// admissionShare is the minimum share of commits with an author without audit.
	admissionShare = 0.99
	// sameShare is the minimum share if both users write the same content. kube-apiserver first tries an update from its cached state,
	// which may be outdated: then two requests are admitted for the same change of the same state, and neither is named. On a busy
	// machine this affects one change in a hundred.
	sameShare = 0.9
)

// concurrentUpdates has two users update one object alternately, faster than one request takes, so that requests overtake each other
// and the API server retries those that lose.
func concurrentUpdates(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "concurrent", "configmaps")
	m.mustSet(t, m.alice, "shared", "first")
	began := time.Now()
	m.update(t, "shared", *changes)
	t.Logf("%d changes, %.0f a second", *changes, float64(*changes)/time.Since(began).Seconds())
	m.checkAuthors(t, "v1/configmaps", *changes+1, admissionShare)
}

// update starts changes at a rate, alternating between the users.
func (m *mirror) update(t *testing.T, name string, count int) {
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

// checkAuthors waits for the commits and checks their authors against the responses. The share of commits with an author must be at
// least the given one, or 1 if facts are exact; changes whose review was not answered may lack it. None may have a wrong author.
func (m *mirror) checkAuthors(t *testing.T, resource string, want int, least float64) {
	t.Helper()
	m.checkShare(t, m.commits(t, resource, want), least)
}

// checkShare checks the authors of commits as checkAuthors does.
func (m *mirror) checkShare(t *testing.T, commits []commit, least float64) {
	t.Helper()
	right := 0
	var wrong mistakes
	for _, c := range commits {
		by, written := m.writeLog.writes[c.ResourceVersion]
		if !written {
			wrong.add("%s has an unknown resourceVersion", c)
		} else if wrong.check(c, by, m.exact) {
			right++
		}
	}
	wrong.report(t)
	unanswered := m.unansweredReviews(t)
	share := float64(right+unanswered) / float64(len(commits))
	t.Logf("%d of %d commits name their author, and %d reviews were not answered", right, len(commits), unanswered)
	if share < least {
		t.Errorf("%.2f %% of the commits name their author, want %.0f %%", 100*share, 100*least)
	}
}

// sameContent has two users write the content that the other has written before, so that neither content nor name distinguishes
// them. The second request of each pair changes nothing.
func sameContent(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "same", "configmaps")
	people := []*person{m.alice, m.bob, m.bob, m.alice}
	const rounds = 60
	for i := range rounds {
		by, other := people[i%4], people[(i+2)%4]
		value := []string{"x", "y"}[i%2]
		m.mustSet(t, by, "shared", value)
		m.mustSet(t, other, "shared", value)
	}
	if written := len(m.writeLog.writes); written != rounds {
		t.Fatalf("%d versions were written, want %d", written, rounds)
	}
	m.checkAuthors(t, "v1/configmaps", rounds, sameShare)
}
