// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/loop"
	"github.com/configbutler/slipstream/pkg/retention"
)

var _ loop.Runner = &retention.Sweeper{}

// A sweep is made at once and then every period, also after one that failed, until the term of the leader ends.
func TestRun(t *testing.T) {
	s := newStage(t, policy())
	lists := make(chan struct{})
	s.client.PrependReactor("list", "appcatalogs", func(clienttesting.Action) (bool, runtime.Object, error) {
		lists <- struct{}{}
		return true, nil, errors.New("no answer")
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.sweeper().Run(ctx) }()
	for range 3 {
		<-lists
		s.clock.Step(time.Hour)
	}
	<-lists
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the end of a term is an error: %v", err)
	}
}

func TestMetrics(t *testing.T) {
	before := counts(t)
	s := newStage(t, append(many(5), policy(), record("shop", "new", 1))...)
	s.client.PrependReactor("delete", resource.Resource, failOnce("shop-00004"))
	if err := s.sweeper().Sweep(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if err := s.sweeper().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := counts(t)
	for name, want := range map[string]float64{
		"slipstream_syncstatuses_expired_total":            5,
		"slipstream_syncstatuses_archived_total":           5,
		"slipstream_retention_sweeps_total result=success": 1,
		"slipstream_retention_sweeps_total result=failure": 1,
	} {
		if got := after[name] - before[name]; got != want {
			t.Errorf("%s grew by %v, want %v", name, got, want)
		}
	}
	if got := after["slipstream_syncstatuses"]; got != 1 {
		t.Errorf("slipstream_syncstatuses = %v, want 1", got)
	}
}

// counts are all metrics with one value, by their names and labels.
func counts(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetName() + "=" + label.GetValue()
			}
			counts[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return counts
}
