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

// idle are environments that nobody looks after yet.
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

// An environment that waits in line does not write a status each time it comes a place further.
func TestWaitingInLineIsToldOnce(t *testing.T) {
	s := newFixture(t)
	c, situation := s.idle(), quiet()
	situation.policy.MaxSyncsPerMinute = new(int32(1))
	for i := range 4 {
		c.starts.ask(numbered(i), noon, 1)
	}
	waiting := &reconciliation{c, situation}
	wants := choice{record: situation.record("a", catalogRun, pending, 0, "jane")}
	first := waiting.enqueueStart(wants)
	c.starts.leave(numbered(1))
	if second := waiting.enqueueStart(wants); first.held.IsZero() || second.held != first.held {
		t.Errorf("first %+v, then %+v", first.held, second.held)
	}
}

// Who cannot be looked after is not waited for in line.
func TestWhoFailsLeavesTheLine(t *testing.T) {
	s := newFixture(t)
	c := s.idle()
	s.api.Client.PrependReactor("get", "environments", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("not now")
	})
	alice := nameOf(environmenttest.Environment())
	c.starts.ask(alice, noon, 0)
	c.queue.Add(alice)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.queue.Run(ctx, 1, c.reconcile)
	}()
	s.eventually("nobody waits", func() error {
		if waiting, _ := c.starts.numbers(); waiting > 0 {
			return fmt.Errorf("%d wait", waiting)
		}
		return nil
	})
	cancel()
	<-done
}

// A run of an environment that is gone, though somebody was to remove what it writes before, does not go on.
func TestRunOfWhatIsGone(t *testing.T) {
	s := newFixture(t)
	c, e := s.idle(), environmenttest.Environment()
	c.runs.begin(t.Context(), e, func(ctx context.Context) { <-ctx.Done() }, func() {})
	c.forget(nameOf(e))
	done := make(chan struct{})
	go func() { c.runs.wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(testkit.Timeout):
		t.Fatal("it goes on")
	}
}

// doneAtOnce is every job.
type doneAtOnce struct{}

func (doneAtOnce) Execute(context.Context, syncer.Job) (syncer.Outcome, error) {
	return syncer.Outcome{}, nil
}

// Who has no run that goes on has none in line either, so that the next one is not taken for it.
func TestRunEndsInLineFirst(t *testing.T) {
	s := newFixture(t)
	c, e := s.idle(), environmenttest.Environment()
	c.executor = doneAtOnce{}
	for range 1000 {
		if ok, _ := c.starts.ask(nameOf(e), noon, 2000); !ok {
			t.Fatal("it waits")
		}
		c.begin(t.Context(), syncer.Job{Environment: e})
		for c.runs.has(nameOf(e)) {
			continue
		}
		if _, running := c.starts.numbers(); running > 0 {
			t.Fatal("the line has a run go on that does not")
		}
		c.runs.wait()
	}
}
