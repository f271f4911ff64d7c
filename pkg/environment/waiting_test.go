// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/test/testkit"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
)

// idle returns the controller's environments without workers.
func (s *fixture) idle() *environments {
	s.Helper()
	shared, err := controller.NewShared(s.controllerProcess(nil), s.api)
	if err != nil {
		s.Fatal(err)
	}
	c, err := newEnvironments(Config{Runner: s.runner()}, shared, s.parts())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(c.queue.ShutDown)
	s.Cleanup(c.offers.queue.ShutDown)
	return c
}

// TestQueuedSyncIsReportedOnce checks that the status of a queued environment is not written whenever its position
// changes.
func TestQueuedSyncIsReportedOnce(t *testing.T) {
	s := newFixture(t)
	c, situation := s.idle(), quiet()
	situation.policy.MaxSyncsPerMinute = new(int32(1))
	for i := range 4 {
		c.starter.starts.tryStart(numbered(i), noon, 1)
	}
	waiting := &reconciliation{c, situation}
	wants := choice{record: situation.record("a", catalogRun, pending, 0, "jane")}
	first := waiting.enqueueStart(wants)
	c.starter.starts.leave(numbered(1))
	if second := waiting.enqueueStart(wants); first.held.IsZero() || second.held != first.held {
		t.Errorf("first %+v, then %+v", first.held, second.held)
	}
}

// TestFailedReconcileLeavesTheQueue checks that an environment that cannot be reconciled does not block the queue.
func TestFailedReconcileLeavesTheQueue(t *testing.T) {
	s := newFixture(t)
	c := s.idle()
	s.api.Client.PrependReactor("get", "environments", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("not now")
	})
	alice := nameOf(environmenttest.Environment())
	c.starter.starts.tryStart(alice, noon, 0)
	c.queue.Add(alice)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.queue.Run(ctx, 1, c.reconcile)
	}()
	s.eventually("the queue is empty", func() error {
		if waiting, _ := c.starter.starts.numbers(); waiting > 0 {
			return fmt.Errorf("%d waiting", waiting)
		}
		return nil
	})
	cancel()
	<-done
}

// TestRunOfADeletedEnvironment checks that the run of a deleted environment is canceled.
func TestRunOfADeletedEnvironment(t *testing.T) {
	s := newFixture(t)
	c, e := s.idle(), environmenttest.Environment()
	c.starter.runs.begin(t.Context(), e, func(ctx context.Context) { <-ctx.Done() }, func() {})
	c.forget(nameOf(e))
	done := make(chan struct{})
	go func() { c.starter.runs.wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(testkit.Timeout):
		t.Fatal("run was not canceled")
	}
}

// doneAtOnce completes every job at once.
type doneAtOnce struct{}

func (doneAtOnce) Execute(context.Context, syncer.Job) (syncer.Outcome, error) {
	return syncer.Outcome{}, nil
}

// TestRunEndsInTheQueueFirst checks that an environment without a run has none in the queue, either, so that the next
// run is not mistaken for it.
func TestRunEndsInTheQueueFirst(t *testing.T) {
	s := newFixture(t)
	c, e := s.idle(), environmenttest.Environment()
	c.starter.executor = doneAtOnce{}
	for range 1000 {
		if ok, _ := c.starter.starts.tryStart(nameOf(e), noon, 2000); !ok {
			t.Fatal("run was not started")
		}
		c.starter.begin(t.Context(), syncer.Job{Environment: e})
		for c.starter.runs.has(nameOf(e)) {
			continue
		}
		if _, running := c.starter.starts.numbers(); running > 0 {
			t.Fatal("queue counts a run that has ended")
		}
		c.starter.runs.wait()
	}
}
