// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

// TestBusyBranchGivesWay checks that a branch with a backlog releases its slot to a waiting branch after each push.
func TestBusyBranchGivesWay(t *testing.T) {
	const changes = 6
	s := newFixture(t, perChange, onBranch("other", "other", "b"), func(s *fixture) {
		one := int32(1)
		s.limits.Workers = 1
		s.in.repositories[0].Spec.Push = &v1alpha1.PushPolicy{MaxCommits: &one}
		s.in.destinations[1].Spec.Granularity = v1alpha1.GranularityPerChange
	})
	s.idle()
	s.git.guard(down)
	for i := range changes {
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	for _, name := range []string{"main", "other"} {
		s.waitReady(name, v1alpha1.ReasonRepositoryUnreachable)
		s.waitPending(name, changes)
	}
	// The first waits until the other waits for the slot. Then the backlogs are checked whenever one of them pushes.
	contended := func() bool { return s.services.slots.all.Contended() }
	var once sync.Once
	var both atomic.Bool
	s.git.guard(func(http.ResponseWriter, *http.Request) bool {
		once.Do(func() {
			for !contended() && s.ctx.Err() == nil {
				<-time.After(time.Millisecond)
			}
		})
		partly := func(name string) bool { n := s.record(name).PendingChanges; return n > 0 && n < changes }
		if partly("main") && partly("other") {
			both.Store(true)
		}
		return true
	})
	s.mirrored()
	s.holds("other", "b", inShop)
	if !both.Load() {
		t.Error("one branch was written completely before the other one started")
	}
}

// TestSuspendedWhileItWaits suspends a destination whose worker waits for a slot: it must not write what it finds then.
func TestSuspendedWhileItWaits(t *testing.T) {
	s := newFixture(t, func(s *fixture) { s.limits.Workers = 1 })
	s.cluster.put(configMap("before"), "1")
	s.mirrored()
	s.idle()
	before := s.commits("main")
	other := func() *branchSlot {
		t.Helper()
		slot, err := s.services.slots.acquire(s.ctx, branchKey{url: "elsewhere"})
		if err != nil {
			t.Fatal(err)
		}
		return slot
	}
	suspend := func(suspend bool) {
		d := s.in.destinations[0].DeepCopy()
		d.Generation++
		d.Spec.Suspend = suspend
		s.in.destinations[0] = d
		s.plan()
	}
	slot := other()
	s.cluster.put(configMap("a"), "1")
	testkit.EventuallyTrue(t, "the worker waits for the slot", s.services.slots.all.Contended)
	suspend(true)
	s.cluster.put(configMap("b"), "1")
	s.waitPending("main", 2)
	slot.release()
	other().release() // The worker had the slot meanwhile.
	if after := s.commits("main"); !slices.Equal(after, before) {
		t.Errorf("commits %v while the destination was suspended", after[:len(after)-len(before)])
	}
	s.waitPending("main", 2)
	suspend(false)
	s.mirrored()
}

func TestSlots(t *testing.T) {
	s := newSlots(3, 2)
	// tries reports whether a slot is free.
	tries := func(url string) func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 { // if both are ready, select chooses either
			slot, err := s.acquire(ctx, branchKey{url: url})
			if err == nil {
				return slot.release
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		return nil
	}
	one, two := tries("a"), tries("a")
	if one == nil || two == nil {
		t.Fatal("repository has no slots")
	}
	if tries("a") != nil {
		t.Error("repository has more slots than its limit")
	}
	three := tries("b")
	if three == nil {
		t.Fatal("repository blocks the slot of another one")
	}
	if tries("c") != nil {
		t.Error("more slots are in use than exist")
	}
	two()
	if tries("b") == nil {
		t.Error("released slot is not free")
	}
	one()
	three()
	if _, ok := s.of["a"]; ok {
		t.Error("unused repository is still stored")
	}
}
