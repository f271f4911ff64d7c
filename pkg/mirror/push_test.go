// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/test/testkit"
)

// TestPushesHoldTheirLimits checks that a backlog is pushed in several pushes within the limits.
func TestPushesHoldTheirLimits(t *testing.T) {
	const changes = 40
	for name, test := range map[string]struct {
		limits  func(*Limits)
		atLeast int64
	}{
		"files": {func(l *Limits) { l.MaxFiles = 10 }, changes / 10},
		"bytes": {func(l *Limits) { l.MaxBytes = 10 << 10 }, changes / 10},
		"both":  {func(*Limits) {}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, perChange, func(s *fixture) { test.limits(&s.limits) })
			s.idle()
			s.git.guard(down)
			for i := range changes {
				s.cluster.put(configMap(fmt.Sprint(i)), strings.Repeat("x", 1<<10))
			}
			s.waitReady("main", v1alpha1.ReasonRepositoryUnreachable)
			s.waitPending("main", changes)
			before := s.process.times("after push")
			s.git.guard(nil)
			s.mirrored()
			s.idle()
			if pushes := int64(s.process.times("after push") - before); pushes < test.atLeast || pushes > test.atLeast+1 {
				t.Errorf("%d pushes, want %d or one more", pushes, test.atLeast)
			}
			if commits := len(s.commits("main")); commits != changes {
				t.Errorf("%d commits for %d changes", commits, changes)
			}
		})
	}
}

// waitPending waits until a number of changes is pending.
func (s *fixture) waitPending(name string, changes int64) {
	s.t.Helper()
	testkit.Eventually(s.t, fmt.Sprintf("%d changes wait", changes), func() error {
		if n := s.record(name).PendingChanges; n != changes {
			return fmt.Errorf("%d changes pending", n)
		}
		return nil
	})
}

func TestHowLongChangesAreDeferred(t *testing.T) {
	const limit = 20 * time.Second
	for name, test := range map[string]struct {
		waiting, settled int
		took             time.Duration
		interval         time.Duration
		want             time.Duration
	}{
		"no change":                            {waiting: 0, settled: 1, took: time.Minute, want: 0},
		"a push of one change":                 {waiting: 1, settled: 1, took: 30 * time.Millisecond, want: 30 * time.Millisecond},
		"a push of several":                    {waiting: 1, settled: 5, took: 30 * time.Millisecond, want: busyInterval},
		"a slow push of several":               {waiting: 1, settled: 5, took: time.Second, want: time.Second},
		"a push slower than anything may wait": {waiting: 1, settled: 5, took: time.Hour, want: limit},
		"the repository wants it sooner":       {waiting: 1, settled: 5, took: time.Hour, interval: time.Second, want: time.Second},
		"as many as one push carries":          {waiting: 10, settled: 5, took: time.Hour, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := world()
			if test.interval > 0 {
				in.repositories[0].Spec.Push = &v1alpha1.PushPolicy{Interval: &metav1.Duration{Duration: test.interval}}
			}
			d := newDestination(in.destinations[0])
			for i := range test.waiting {
				d.queue.Durable(outbox.Row{Sequence: uint64(i + 1)})
			}
			m := member{destination: d, plan: &destinationPlan{object: in.destinations[0], repository: in.repositories[0]}}
			b := &batching{limits: Limits{MaxFiles: 10, MaxBytes: 1 << 20, MaxWait: limit}, race: &race{}}
			earliest := time.Now().Add(test.want)
			b.pushed([]member{m}, test.settled, test.took)
			latest := time.Now().Add(test.want)
			switch {
			case test.want == 0 && !b.until.IsZero():
				t.Errorf("deferred until %s", b.until)
			case test.want > 0 && (b.until.Before(earliest) || b.until.After(latest)):
				t.Errorf("deferred until %s, want %s to %s", b.until, earliest, latest)
			}
		})
	}
}

func TestCommitsHaveLinks(t *testing.T) {
	s := newFixture(t, func(s *fixture) {
		s.in.repositories[0].Spec.WebURLTemplate = "https://git.example.com/shop/-/commit/{sha}"
	})
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	testkit.Eventually(t, "the link", func() error {
		commit := s.record("main").LastCommit
		if want := "https://git.example.com/shop/-/commit/" + s.mustRun("rev-parse", "main"); commit == nil || commit.URL != want ||
			commit.Message != s.mustRun("log", "-1", "--format=%s", "main") {
			return fmt.Errorf("commit = %+v, want URL %s", commit, want)
		}
		return nil
	})
}
