// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/test/testkit"
)

// broken is a controller that cannot be set up.
type broken struct{}

func (broken) Name() string { return "broken" }

func (broken) Setup(context.Context, *controller.Shared) (controller.Run, error) {
	return nil, errBroken
}

var errBroken = errors.New("broken")

// TestTermThatEndsBeforeItRuns checks that a controller that was set up and never run leaves no goroutines.
func TestTermThatEndsBeforeItRuns(t *testing.T) {
	s := newFixture(t)
	existing := goleak.IgnoreCurrent()
	group, _ := s.group(broken{})
	if err := group.Run(t.Context()); !errors.Is(err, errBroken) {
		t.Fatalf("error = %v, want %v", err, errBroken)
	}
	testkit.NoGoroutines(t, existing)
}

// TestSinksShareNoLimit checks that a sink that has used up its rate limit does not delay another one.
func TestSinksShareNoLimit(t *testing.T) {
	clientOf, err := SinkClients(&rest.Config{Host: "https://192.0.2.1", QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	busy, err := clientOf()
	if err != nil {
		t.Fatal(err)
	}
	other, err := clientOf()
	if err != nil {
		t.Fatal(err)
	}
	limit := busy.CoreV1().RESTClient().GetRateLimiter()
	for range sinkBurst {
		limit.TryAccept()
	}
	if limit.TryAccept() || !other.CoreV1().RESTClient().GetRateLimiter().TryAccept() {
		t.Error("sinks have no rate limit, or share one")
	}
	if busy.BatchV1().RESTClient().GetRateLimiter().TryAccept() {
		t.Error("Jobs of a sink do not share its rate limit")
	}
}
