// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/test/testkit"
)

// failing is a storage whose reads fail.
type failing struct {
	storage.Interface
	err error
}

func (s failing) GetList(context.Context, string, storage.ListOptions, runtime.Object) error {
	return s.err
}

func (s failing) Get(context.Context, string, storage.GetOptions, runtime.Object) error { return s.err }

// TestLooksThatAreAskedFor checks that a monitor whose check takes a second runs one at most every 50 seconds, whatever
// clients request.
func TestLooksThatAreAskedFor(t *testing.T) {
	store, kv := newStore(t)
	put(t, kv, badKey, "good")
	clock := testingclock.NewFakeClock(time.Now())
	var looks atomic.Int64
	kv.before = func(string) {
		clock.Step(time.Second)
		looks.Add(1)
	}
	var checked atomic.Int64
	monitor := NewMonitor(store, clock, func(context.Context) { checked.Add(1) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		monitor.Run(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	looked := func(want int64) {
		t.Helper()
		// Whether it looks once more shows when it waits for the clock again.
		testkit.Eventually(t, "the check", func() error {
			if n := looks.Load(); n < want || checked.Load() < want || !clock.HasWaiters() || len(monitor.wake) > 0 {
				return fmt.Errorf("%d looks, want %d", n, want)
			}
			return nil
		})
	}
	resource := schema.GroupResource{Group: "configbutler.ai", Resource: "gitrepoconfigs"}
	fail := func(err error, read func(*explainingStorage) error) {
		t.Helper()
		if got := read(&explainingStorage{Interface: failing{err: err}, resource: resource, monitor: monitor}); !errors.Is(got, err) {
			t.Errorf("the read ended with %v", got)
		}
	}
	get := func(s *explainingStorage) error { return s.Get(ctx, "/a", storage.GetOptions{}, nil) }
	list := func(s *explainingStorage) error { return s.GetList(ctx, "/", storage.ListOptions{}, nil) }
	stays := func(want int64) {
		t.Helper()
		err := wait.PollUntilContextTimeout(ctx, time.Millisecond, 100*time.Millisecond, true, func(context.Context) (bool, error) {
			return looks.Load() != want, nil
		})
		if err == nil {
			t.Fatalf("%d looks, want %d", looks.Load(), want)
		}
	}

	looked(1)
	fail(storage.NewInternalError(errors.New("the key service is down")), get)
	stays(1)
	clock.Step(49 * time.Second)
	stays(1)
	clock.Step(time.Second)
	looked(2)
	clock.Step(50 * time.Second)
	looked(2) // It waits for the clock again.
	for range 10 {
		fail(apierrors.NewTooManyRequests("storage is (re)initializing", 1), list)
		fail(storage.ErrStorageNotReady, list)
	}
	stays(2)
	put(t, kv, badKey, "bad") // The next look is due 500 seconds after the last.
	clock.Step(450 * time.Second)
	looked(3)
	if err := monitor.HealthCheck().Check(nil); err == nil {
		t.Error("the record was not found")
	}
}

// pacedMonitor is a running monitor of 2500 records, which are read in pages of 200.
type pacedMonitor struct {
	*Monitor
	clock *testingclock.FakeClock
	kv    *hookedKV
	// pages and rests count the pages that were read and the calls of rested, and failures is how many of the next reads fail.
	pages, rests, failures atomic.Int64
}

// newPacedMonitor returns a monitor that is not running. Each page takes a time, and the first record is the given one.
func newPacedMonitor(t *testing.T, page time.Duration, first string) *pacedMonitor {
	t.Helper()
	store, kv := newStore(t)
	put(t, kv, badKey, first)
	for i := range 2499 {
		put(t, kv, fmt.Sprintf("%s-%d", badKey, i), "good")
	}
	m := &pacedMonitor{clock: testingclock.NewFakeClock(time.Now()), kv: kv}
	kv.before = func(string) {
		m.clock.Step(page)
		m.pages.Add(1)
	}
	m.Monitor = NewMonitor(store, m.clock, func(context.Context) { m.rests.Add(1) })
	return m
}

func (m *pacedMonitor) start(t *testing.T) {
	t.Helper()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		m.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// waits waits until the monitor waits for the clock, after it has read pages.
func (m *pacedMonitor) waits(t *testing.T, what string, pages, rests int64) {
	t.Helper()
	testkit.Eventually(t, what, func() error {
		if p, r := m.pages.Load(), m.rests.Load(); p != pages || r != rests || !m.clock.HasWaiters() {
			return fmt.Errorf("%d pages were read with %d pauses", p, r)
		}
		return nil
	})
}

// TestPace requests another check at the second pause. The page takes 0.1 s.
func TestPace(t *testing.T) {
	m := newPacedMonitor(t, 100*time.Millisecond, "good")
	m.start(t)
	m.waits(t, "the first pause", 5, 1)
	m.clock.Step(maxPause - 1)
	m.waits(t, "the rest of the first pause", 5, 1)
	m.clock.Step(1)
	m.waits(t, "the second pause", 10, 2)
	m.lookSoon()
	m.clock.Step(maxPause)
	m.waits(t, "the end of the check", 13, 3)
	m.clock.Step(64 * time.Second) // 50 times as long as the reads took.
	m.waits(t, "the delay after the first check", 13, 3)
	m.clock.Step(time.Second)
	m.waits(t, "the end of the check that was requested, without a pause", 26, 4)
}

// TestShortPause has pages that take 1 ms, and so a pause of nine times five of them.
func TestShortPause(t *testing.T) {
	m := newPacedMonitor(t, time.Millisecond, "good")
	m.start(t)
	m.waits(t, "the first pause", 5, 1)
	m.clock.Step(45*time.Millisecond - 1)
	m.waits(t, "the rest of the first pause", 5, 1)
	m.clock.Step(1)
	m.waits(t, "the second pause", 10, 2)
}

// TestReasonsToHurry has checks that must not pause any more.
func TestReasonsToHurry(t *testing.T) {
	t.Run("a record is found", func(t *testing.T) {
		m := newPacedMonitor(t, 100*time.Millisecond, "bad")
		m.start(t)
		m.waits(t, "the end of the check", 13, 1)
	})
	t.Run("watch caches are not initialized", func(t *testing.T) {
		m := newPacedMonitor(t, 1500*time.Millisecond, "good")
		explaining := &explainingStorage{Interface: failing{err: storage.ErrStorageNotReady}, monitor: m.Monitor}
		list := func() { _ = explaining.GetList(t.Context(), "/", storage.ListOptions{}, nil) }
		list()
		m.start(t)
		m.waits(t, "the first pause, after 7.5 s", 5, 1)
		list()
		m.clock.Step(maxPause)
		m.waits(t, "the end of the check, without a pause after 17 s", 13, 2)
	})
	t.Run("a check that is requested fails", func(t *testing.T) {
		m := newPacedMonitor(t, time.Millisecond, "good")
		m.lookSoon()
		m.kv.fail = func(string) error {
			if m.failures.Add(-1) >= 0 {
				return errors.New("the store does not respond")
			}
			return nil
		}
		m.start(t)
		m.waits(t, "the end of the first check, which another request hurries", 13, 1)
		m.failures.Store(1)
		m.clock.Step(time.Second)
		m.waits(t, "the failure of the check that was requested", 14, 2)
		m.clock.Step(time.Second)
		testkit.Eventually(t, "the end of the check after it, without a pause", func() error {
			m.clock.Step(1) // Its clock ends a wait of no duration only when it is stepped.
			if rests := m.rests.Load(); rests != 3 {
				return fmt.Errorf("%d pages were read with %d pauses", m.pages.Load(), rests)
			}
			return nil
		})
		if pages := m.pages.Load(); pages != 27 {
			t.Errorf("%d pages were read", pages)
		}
	})
}
