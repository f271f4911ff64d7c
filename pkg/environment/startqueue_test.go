// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func numbered(i int) types.NamespacedName { return types.NamespacedName{Name: fmt.Sprint(i)} }

func TestQueueIsInOrder(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	l := newStartQueue(clock)
	var begun []string
	// The newest one asks first.
	ask := func() (again []time.Time) {
		for i := range slices.Backward([]int{0, 1, 2, 3}) {
			if slices.Contains(begun, fmt.Sprint(i)) {
				continue
			}
			ok, at := l.tryStart(numbered(i), noon.Add(time.Duration(i)*time.Second), 2)
			if ok {
				begun = append(begun, fmt.Sprint(i))
				l.end(numbered(i))
			}
			again = append(again, at)
		}
		return again
	}
	ask() // 3 and 2 are the only ones in the queue when they ask.
	if !slices.Equal(begun, []string{"3", "2"}) {
		t.Fatalf("started %q", begun)
	}
	for _, at := range ask() {
		if !at.Equal(noon.Add(time.Minute)) {
			t.Errorf("retried at %s", at)
		}
	}
	clock.SetTime(noon.Add(59 * time.Second))
	ask()
	if len(begun) != 2 {
		t.Fatalf("started %q within a minute", begun)
	}
	clock.SetTime(noon.Add(time.Minute))
	ask()
	if !slices.Equal(begun, []string{"3", "2", "1", "0"}) {
		t.Errorf("started %q", begun)
	}
}

func TestQueueStartsTheFirst(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(noon)
	l := newStartQueue(clock)
	for i := range 5 {
		if ok, _ := l.tryStart(numbered(i), noon.Add(time.Duration(i)), 1); ok != (i == 0) {
			t.Fatalf("%d: %t", i, ok)
		}
	}
	l.end(numbered(0))
	clock.SetTime(noon.Add(time.Minute))
	if ok, _ := l.tryStart(numbered(3), noon.Add(3), 1); ok {
		t.Error("the third one was started")
	}
	if next := l.leave(numbered(1)); !slices.Equal(next, []types.NamespacedName{numbered(2), numbered(3), numbered(4)}) {
		t.Errorf("next = %v", next)
	}
	if ok, _ := l.tryStart(numbered(2), noon.Add(2), 1); !ok {
		t.Error("the first one was not started")
	}
	if next := l.leave(numbered(9)); next != nil {
		t.Errorf("next after an unknown one = %v", next)
	}
	if next := l.undo(numbered(2)); !slices.Equal(next, []types.NamespacedName{numbered(3), numbered(4)}) {
		t.Errorf("next after a start that was undone = %v", next)
	}
	if ok, _ := l.tryStart(numbered(3), noon.Add(3), 1); !ok {
		t.Error("a start that was undone counts")
	}
}

// TestRetriesKeepTheirPlace checks that the first environments in the queue can start, even if all of them were requested in one second and
// the others have tried in the meantime.
func TestRetriesKeepTheirPlace(t *testing.T) {
	l := newStartQueue(clocktesting.NewFakePassiveClock(noon))
	const all = 3 * maxRuns
	for i := range all {
		l.tryStart(numbered(i), noon, 1000)
	}
	for first := maxRuns; first < all; first += maxRuns {
		for i := first; i < all; i++ {
			if ok, _ := l.tryStart(numbered(i), noon, 1000); ok {
				t.Fatalf("%d was started while %d syncs run", i, maxRuns)
			}
		}
		for i := first - maxRuns; i < first; i++ {
			l.end(numbered(i))
		}
		for i := all - 1; i >= first; i-- {
			if ok, _ := l.tryStart(numbered(i), noon, 1000); ok != (i < first+maxRuns) {
				t.Fatalf("after %d syncs: %d: %t", first, i, ok)
			}
		}
	}
}

func TestQueueLimitsRunningSyncs(t *testing.T) {
	l := newStartQueue(clocktesting.NewFakePassiveClock(noon))
	for i := range maxRuns + 1 {
		if ok, _ := l.tryStart(numbered(i), noon, 1000); ok != (i < maxRuns) {
			t.Fatalf("%d: %t", i, ok)
		}
	}
	if waiting, running := l.numbers(); waiting != 1 || running != maxRuns {
		t.Errorf("%d waiting, %d running", waiting, running)
	}
	if next := l.end(numbered(0)); len(next) != 1 {
		t.Errorf("next = %v", next)
	}
}
