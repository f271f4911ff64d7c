// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// TestRun checks that sweeps run immediately, every period, also after a failed one, and when the SyncPolicy is created, updated or
// deleted, until the leader term ends.
func TestRun(t *testing.T) {
	s := newFixture(t)
	sweeps := make(chan struct{}, 100)
	s.client.PrependReactor("list", "appcatalogs", func(clienttesting.Action) (bool, runtime.Object, error) {
		sweeps <- struct{}{}
		return true, nil, errors.New("no answer")
	})
	stop := s.run(t)
	<-sweeps
	for range 3 {
		s.clock.Step(time.Hour)
		<-sweeps
	}
	if err := s.client.Tracker().Create(policies, policy(), ""); err != nil {
		t.Fatal(err)
	}
	<-sweeps
	for range 3 {
		s.setPolicy(t, policy(unarchived))
		<-sweeps
	}
	if err := s.client.Tracker().Delete(policies, "", v1alpha1.SyncPolicyName); err != nil {
		t.Fatal(err)
	}
	<-sweeps
	stop()
}

// TestOwnStatusIsNoChange checks that the status that a sweep writes does not cause another one.
func TestOwnStatusIsNoChange(t *testing.T) {
	s := newFixture(t, policy())
	sweeps := make(chan struct{}, 100)
	s.client.PrependReactor("list", "appcatalogs", func(clienttesting.Action) (bool, runtime.Object, error) {
		sweeps <- struct{}{}
		return false, nil, nil
	})
	stop := s.run(t)
	s.waitForStatus(t, func(status v1alpha1.SyncPolicyStatus) bool { return status.LastRetentionTime != nil })
	s.setPolicy(t, policy(unarchived)) // is seen after the status
	s.waitForStatus(t, func(status v1alpha1.SyncPolicyStatus) bool { return status.ObservedGeneration == 1 })
	stop()
	if len(sweeps) != 2 {
		t.Errorf("%d sweeps, want 2", len(sweeps))
	}
}

// run runs a sweeper until stop is called. When run returns, the sweeper follows the SyncPolicy.
func (s *fixture) run(t *testing.T) (stop func()) {
	t.Helper()
	following := make(chan struct{})
	s.client.PrependWatchReactor(policies.Resource, func(clienttesting.Action) (bool, watch.Interface, error) {
		events, err := s.client.Tracker().Watch(policies, "")
		close(following)
		return true, events, err
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, s.config(), s.server()) }()
	<-following
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run returned an error at the end of the leader term: %v", err)
		}
	}
}

// waitForStatus waits until the status of the SyncPolicy is as expected.
func (s *fixture) waitForStatus(t *testing.T, enough func(v1alpha1.SyncPolicyStatus) bool) {
	t.Helper()
	testkit.EventuallyTrue(t, "the status of the SyncPolicy", func() bool { return enough(s.policyStatus(t)) })
}

func TestMetrics(t *testing.T) {
	before := counts(t)
	s := newFixture(t, append(many(5), policy(), record("shop", "new", 1))...)
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

// counts returns all metrics with one value, by name and labels.
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
