// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/readiness"
	"github.com/configbutler/slipstream/test/testkit"
)

// fixture is a cluster in which the workloads of environments are watched.
type fixture struct {
	testing.TB
	cluster     *dynamicfake.FakeDynamicClient
	clock       *testkit.Clock
	environment *v1alpha1.Environment
	watcher     *readiness.Watcher
	// notified are the environments that were reported as changed.
	notified chan types.NamespacedName
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	s := &fixture{
		TB: t, cluster: dynamicfake.NewSimpleDynamicClient(scheme.Scheme), clock: testkit.NewClock(t),
		environment: environmenttest.Environment(), notified: make(chan types.NamespacedName, 100),
	}
	var err error
	s.watcher, err = readiness.New(readiness.Config{
		Client: s.cluster, Clock: s.clock, Changed: func(environment types.NamespacedName) { s.notified <- environment },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run starts the watcher.
func (s *fixture) run() {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.watcher.Run(ctx)
	}()
	s.Cleanup(func() {
		cancel()
		<-done
	})
}

// runs starts the watcher and waits until it knows all workloads.
func (s *fixture) runs() {
	s.Helper()
	s.run()
	testkit.EventuallyTrue(s, "all workloads to be known", func() bool {
		count, _ := s.watcher.Of(s.environment)
		return count != nil
	})
}

// mine returns an object that the environment has written.
func (s *fixture) mine(text string) *unstructured.Unstructured {
	s.Helper()
	o := environmenttest.Object(s, text)
	labels := map[string]string{
		v1alpha1.LabelEnvironment: s.environment.Name, v1alpha1.LabelEnvironmentNamespace: s.environment.Namespace,
		v1alpha1.LabelEnvironmentUID: string(s.environment.UID),
	}
	maps.Copy(labels, o.GetLabels())
	o.SetLabels(labels)
	if o.GetNamespace() == "" {
		o.SetNamespace(environmenttest.Target)
	}
	return o
}

func (s *fixture) resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return s.cluster.Resource(resource).Namespace(o.GetNamespace())
}

func (s *fixture) create(o *unstructured.Unstructured) {
	s.Helper()
	if _, err := s.resource(o).Create(s.Context(), o, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *fixture) update(o *unstructured.Unstructured) {
	s.Helper()
	if _, err := s.resource(o).Update(s.Context(), o, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *fixture) delete(o *unstructured.Unstructured) {
	s.Helper()
	if err := s.resource(o).Delete(s.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// is waits until so many of the environment's workloads are ready.
func (s *fixture) is(ready, total int32, troubles ...string) {
	s.Helper()
	var count *v1alpha1.WorkloadsReady
	var got []string
	want := v1alpha1.WorkloadsReady{Ready: ready, Total: total}
	defer func() {
		if s.Failed() {
			s.Logf("%v, %q; want %v, %q", count, got, want, troubles)
		}
	}()
	testkit.EventuallyTrue(s, "workloads", func() bool {
		count, got = s.watcher.Of(s.environment)
		return count != nil && *count == want && strings.Join(got, "\n") == strings.Join(troubles, "\n")
	})
}

// expectNotification advances the clock over the time for which changes are collected, and expects a notification then.
func (s *fixture) expectNotification(want types.NamespacedName) {
	s.Helper()
	testkit.EventuallyTrue(s, "a pending notification", s.clock.HasWaiters)
	s.clock.Step(time.Second)
	select {
	case got := <-s.notified:
		if got != want {
			s.Errorf("notified of %s, want %s", got, want)
		}
	case <-time.After(testkit.Timeout):
		s.Fatal("no notification")
	}
}

// expectNoNotification expects that no notification was sent or is pending.
func (s *fixture) expectNoNotification() {
	s.Helper()
	if s.clock.HasWaiters() || len(s.notified) > 0 {
		s.Errorf("a notification is pending, or %d were sent", len(s.notified))
	}
}
