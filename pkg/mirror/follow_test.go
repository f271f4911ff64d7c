// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// overtakenTimes has another writer push a file before each of our pushes that arrives, up to a number of times, and counts them.
func (s *fixture) overtakenTimes(times int32, path string) *atomic.Int32 {
	pushes := &atomic.Int32{}
	s.git.guard(func(_ http.ResponseWriter, r *http.Request) bool {
		if isPush(r) {
			if n := pushes.Add(1); n <= times {
				s.commitTheirs("theirs", path, fmt.Sprint("faster ", n))
			}
		}
		return true
	})
	return pushes
}

// TestPushFollowsAnotherWriter checks that commits which follow another writer are pushed once, with Changes that name them, and that the
// worker does not begin a new cycle.
func TestPushFollowsAnotherWriter(t *testing.T) {
	s := newFixture(t, recorded, perChange)
	s.cluster.put(configMap("a"), "before")
	s.mirrored()
	s.idle()
	pushes := s.overtakenTimes(5, "theirs/file")
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	if n, retries := pushes.Load(), s.record("main").PushRetries; n != 6 || retries != 5 {
		t.Errorf("%d pushes and %d retries, want 6 and 5", n, retries)
	}
	if s.registry.all()[0].record.current().lastCommit.String() != s.mustRun("rev-parse", "main") {
		t.Errorf("the record has the commit %s", s.registry.all()[0].record.current().lastCommit)
	}
	s.eachChangeOnce(configMap("a"))
	s.checkChanges(configMap("a"))
	if waiting := s.mustRun("log", "--format=%s", "-1", "main"); waiting != "[UPDATE] v1/configmaps shop/a" {
		t.Errorf("the last commit is %q", waiting)
	}
}

// TestPushDoesNotFollowIntoItsFolder checks that what another writer changes in the folder is reverted, although a push would be
// possible without that.
func TestPushDoesNotFollowIntoItsFolder(t *testing.T) {
	s := newFixture(t, perChange)
	s.cluster.put(configMap("a"), "1")
	s.cluster.put(configMap("b"), "1")
	s.mirrored()
	s.idle()
	s.overtakenTimes(1, "clusters/a/core/v1/configmaps/shop/a.yaml")
	s.cluster.put(configMap("b"), "2")
	s.mirrored()
	s.idle()
	s.eachChangeOnce(configMap("b"))
}

// TestDeathWhileFollowing kills the process at each step of a push that follows another writer.
func TestDeathWhileFollowing(t *testing.T) {
	for _, moment := range []string{
		"before put pushes 2", "after put pushes 2", "before push 2", "after push 2", "before put history 2", "after put history 2",
	} {
		t.Run(moment, func(t *testing.T) {
			s := newFixture(t, recorded, perChange)
			s.cluster.put(configMap("a"), "before")
			s.mirrored()
			s.idle()
			pushes := s.overtakenTimes(1, "theirs/file")
			step, number, _ := cutLast(moment)
			died := s.process.killAt(step, int(number[0]-'0'))
			s.cluster.put(configMap("a"), "1")
			<-died
			s.stop()
			s.start()
			s.cluster.put(configMap("a"), "2")
			s.mirrored()
			s.idle()
			if pushes.Load() < 2 {
				t.Error("no push followed another writer: the test is void")
			}
			s.eachChangeOnce(configMap("a"))
			s.checkChanges(configMap("a"))
			if n := strings.Count(strings.Join(s.commits("main"), "\n"), "[UPDATE]"); n > 2 {
				t.Errorf("%d commits of two changes: %q", n, s.commits("main"))
			}
		})
	}
}
