// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The longest takeovers, while the Lease can be watched and while it cannot.
var (
	afterKill, afterStop         = OneOfSeveral.Duration, time.Duration(0)
	afterKillPoll, afterStopPoll = OneOfSeveral.Duration + pollInterval, pollInterval
)

func defaultLease(client *fake.Clientset, identity string) Lease {
	lease := shortLease(client, identity)
	lease.Times = OneOfSeveral
	return lease
}

// TestTakeover ends a leader at any moment of its term, while a second process waits.
func TestTakeover(t *testing.T) {
	for name, tt := range map[string]struct {
		watch           func(context.Context) (watch.Interface, error)
		killed, stopped time.Duration
	}{
		"watched": {killed: afterKill, stopped: afterStop},
		"not watched": {
			watch:  func(context.Context) (watch.Interface, error) { return nil, errors.New("forbidden") },
			killed: afterKillPoll, stopped: afterStopPoll,
		},
		"watches that end": {
			watch: func(context.Context) (watch.Interface, error) {
				w := watch.NewFake()
				w.Stop()
				return w, nil
			},
			killed: afterKillPoll, stopped: afterStopPoll,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var worstKill, worstStop time.Duration
			for range 12 {
				worstKill = max(worstKill, takeover(t, true, tt.watch))
				worstStop = max(worstStop, takeover(t, false, tt.watch))
			}
			t.Logf("at most %s after a kill and %s after a stop", worstKill, worstStop)
			if worstKill > tt.killed || worstStop > tt.stopped {
				t.Errorf("want at most %s and %s", tt.killed, tt.stopped)
			}
		})
	}
}

// takeover measures the time from the leader's end to the next one's start. The next one may have a watch of its own.
func takeover(t *testing.T, killed bool, watch func(context.Context) (watch.Interface, error)) (took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		first, second := newRecorder(), newRecorder()
		close(first.drain)
		close(second.drain)
		lease := defaultLease(client, "a")
		var dead atomic.Bool
		newLock := lease.NewLock
		lease.NewLock = func() resourcelock.Interface { return mortalLock{newLock(), &dead} }
		_, stop := start(t, lease, first)
		<-first.started
		next := defaultLease(client, "b")
		if watch != nil {
			next.Watch = watch
		}
		_, _ = start(t, next, second)
		<-time.After(time.Duration(rand.Int64N(int64(time.Minute))))
		began := time.Now()
		if killed {
			dead.Store(true)
		} else {
			stop()
		}
		<-second.started
		took = time.Since(began)
	})
	return took
}

// mortalLock is the lock of a process that makes no more requests once it is dead.
type mortalLock struct {
	resourcelock.Interface
	dead *atomic.Bool
}

func (l mortalLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.dead.Load() {
		return errors.New("dead")
	}
	return l.Interface.Update(ctx, record) //nolint:wrapcheck // a lock's error is the elector's
}

// A Lease that ran out is asked for until it can be had, and one process leads then.
func TestALeaseThatCannotBeWrittenForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		first, second := newRecorder(), newRecorder()
		close(first.drain)
		close(second.drain)
		var dead atomic.Bool
		var tries atomic.Int32
		client.PrependReactor("update", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if dead.Load() {
				tries.Add(1)
				return true, nil, errors.New("the API server is away")
			}
			return false, nil, nil
		})
		lease := defaultLease(client, "a")
		newLock := lease.NewLock
		lease.NewLock = func() resourcelock.Interface { return mortalLock{newLock(), &dead} }
		_, _ = start(t, lease, first)
		<-first.started
		_, _ = start(t, defaultLease(client, "b"), second)
		dead.Store(true)
		<-time.After(time.Minute)
		if tries.Load() == 0 {
			t.Error("the lease was never asked for")
		}
		dead.Store(false)
		select {
		case <-first.started:
		case <-second.started:
		}
		<-time.After(time.Minute)
		if n := first.running.Load() + second.running.Load(); n != 1 {
			t.Errorf("%d lead", n)
		}
	})
}

// faultyLock is a lock whose renewals fail from a time on. Reading and releasing the Lease still works.
type faultyLock struct {
	resourcelock.Interface
	broken *atomic.Bool
	fault  func(ctx context.Context) error
}

func (l faultyLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != "" && l.broken.Load() {
		return l.fault(ctx)
	}
	return l.Interface.Update(ctx, record) //nolint:wrapcheck // a lock's error is the elector's
}

// TestALeaderThatCannotRenew checks that a leader whose renewals fail has stopped before another one leads, although its runners take
// most of the time that they have to drain.
func TestALeaderThatCannotRenew(t *testing.T) {
	for name, fault := range map[string]func(context.Context) error{
		"fails": func(context.Context) error { return errors.New("the API server is not available") },
		"hangs": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				first, second := newRecorder(), newRecorder()
				close(first.drain)
				close(second.drain)
				first.lingers = OneOfSeveral.Duration - OneOfSeveral.RenewDeadline - time.Second
				var broken atomic.Bool
				lease := defaultLease(client, "a")
				newLock := lease.NewLock
				lease.NewLock = func() resourcelock.Interface { return faultyLock{newLock(), &broken, fault} }
				_, _ = start(t, lease, first)
				<-first.started
				_, _ = start(t, defaultLease(client, "b"), second)
				<-time.After(time.Duration(rand.Int64N(int64(time.Minute))))
				broken.Store(true)
				<-second.started
				if first.running.Load() > 0 {
					t.Error("two processes lead at once")
				}
			})
		})
	}
}

// TestShortOutage checks that a leader stays the leader through an outage that is a little shorter than two retry periods.
func TestShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		runner := newRecorder()
		close(runner.drain)
		var broken atomic.Bool
		lease := defaultLease(client, "a")
		newLock := lease.NewLock
		lease.NewLock = func() resourcelock.Interface {
			return faultyLock{newLock(), &broken, func(context.Context) error { return errors.New("the API server is not available") }}
		}
		_, _ = start(t, lease, runner)
		<-runner.started
		for range 5 {
			<-time.After(time.Minute + time.Duration(rand.Int64N(int64(time.Minute))))
			broken.Store(true)
			<-time.After(2*OneOfSeveral.RetryPeriod - 100*time.Millisecond)
			broken.Store(false)
		}
		<-time.After(time.Minute)
		if n := runner.starts.Load(); n != 1 {
			t.Errorf("%d terms, want 1", n)
		}
	})
}

// TestAStoppedLeaderHandsOver checks that another process leads as soon as the runners of a stopped leader have drained.
func TestAStoppedLeaderHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		first, second := newRecorder(), newRecorder()
		close(second.drain)
		_, stop := start(t, defaultLease(client, "a"), first)
		<-first.started
		_, _ = start(t, defaultLease(client, "b"), second)
		<-time.After(time.Minute)
		stop()
		<-time.After(2 * OneOfSeveral.Duration) // it renews the Lease while it drains
		select {
		case <-second.started:
			t.Fatal("two processes lead at once")
		default:
		}
		drained := time.Now()
		close(first.drain)
		<-second.started
		if took := time.Since(drained); took > afterStop {
			t.Errorf("the next leader started after %s", took)
		}
	})
}
