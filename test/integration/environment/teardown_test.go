// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/environment/teardown"
)

// environmentIn returns an environment that has created its target.
func environmentIn(namespace, name string) *v1alpha1.Environment {
	return &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name, UID: types.UID("uid-of-" + name)},
		Spec: v1alpha1.EnvironmentSpec{
			TargetNamespace: namespace, CreateNamespace: true, DeletionPolicy: v1alpha1.DeletionPolicyDelete,
		},
	}
}

// writtenBy returns an object with the labels of the environment.
func writtenBy(e *v1alpha1.Environment, o *unstructured.Unstructured) *unstructured.Unstructured {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, plan.Namespace(e).GetLabels())
	o.SetLabels(labels)
	o.SetNamespace(e.Spec.TargetNamespace)
	return o
}

// remover returns a Remover that reports why namespaces are kept.
func (s *fixture) remover(kept func(reason string)) *teardown.Remover {
	s.Helper()
	config, err := cluster.Admin().RESTConfig()
	if err != nil {
		s.Fatal(err)
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		s.Fatal(err)
	}
	return &teardown.Remover{
		Client: client, Mapper: s.mapper, Discovery: discoverer, Limiter: s.applier.Limiter, Concurrency: s.applier.Concurrency,
		Clock: clock.RealClock{},
		Kept:  func(_ *v1alpha1.Environment, reason string) { kept(reason) },
	}
}

// removeAll removes an environment until nothing is left, and returns why the namespace is kept.
func (s *fixture) removeAll(e *v1alpha1.Environment) (reason string) {
	s.Helper()
	remover := s.remover(func(why string) { reason = why })
	var last []string
	s.eventually("the end of environment "+e.Name, func(ctx context.Context) (bool, error) {
		left, err := remover.Remove(ctx, e)
		if strings.Join(left, "\n") != strings.Join(last, "\n") {
			s.Logf("left: %q", left)
		}
		last = left
		return len(left) == 0, err
	})
	return reason
}

// names returns the names of the objects of a type in the namespace.
func (s *fixture) names(apiVersion, kind string) []string {
	s.Helper()
	found, err := s.resource(s.object("{apiVersion: "+apiVersion+", kind: "+kind+"}")).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	var names []string
	for _, item := range found.Items {
		names = append(names, item.GetName())
	}
	return names
}

// deleteClaim deletes a claim without its finalizer, because its protection controller does not run.
func (s *fixture) deleteClaim(name string) {
	s.Helper()
	claim := s.object("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: " + name + "}}")
	patch := []byte(`{"metadata": {"finalizers": null}}`)
	if _, err := s.resource(claim).Patch(s.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
	s.delete(claim)
}

func TestTeardown(t *testing.T) {
	s := newFixture(t, "shop-ending")
	e := environmentIn(s.namespace, "ending")
	var steps []apply.Step
	for _, o := range s.copies() {
		steps = append(steps, create(writtenBy(e, o)))
	}
	target := apply.Target{Namespace: s.namespace, Creation: plan.Namespace(e)}
	if report, err := s.applier.Apply(t.Context(), target, steps, nil); err != nil || !report.IsClean() {
		t.Fatalf("%v: %q", err, lines(report))
	}
	s.eventually("Pods and a claim", func(context.Context) (bool, error) {
		return len(s.names("v1", "Pod")) > 2 && len(s.names("v1", "PersistentVolumeClaim")) > 0, nil
	})
	notes := s.put("{apiVersion: v1, kind: ConfigMap, metadata: {name: notes}}")

	reason := s.removeAll(e)
	for _, why := range []string{"ConfigMap notes is not of this environment", "PersistentVolumeClaim "} {
		if !strings.Contains(reason, why) {
			t.Errorf("reason %q lacks %s", reason, why)
		}
	}
	for _, o := range steps {
		if s.live(o.Apply) != nil {
			t.Errorf("%s %s still exists", o.Apply.GetKind(), o.Apply.GetName())
		}
	}
	if pods, sets := s.names("v1", "Pod"), s.names("apps/v1", "ReplicaSet"); len(pods)+len(sets) > 0 {
		t.Errorf("Pods and ReplicaSets still exist: %q, %q", pods, sets)
	}
	if s.live(notes) == nil {
		t.Error("object of another user was deleted")
	}

	s.delete(notes)
	for _, claim := range s.names("v1", "PersistentVolumeClaim") {
		s.deleteClaim(claim)
	}
	s.eventually("the empty namespace to be deleted", func(context.Context) (bool, error) {
		s.removeAll(e)
		return s.live(plan.Namespace(e)) == nil, nil
	})
}

// TestTeardownOfABranch checks that the removal of a Branch keeps the objects of its base in the same target.
func TestTeardownOfABranch(t *testing.T) {
	s := newTarget(t, "shop-based")
	base, branch := environmentIn(s.namespace, "based"), environmentIn(s.namespace, "based-branch")
	settings := writtenBy(base, s.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}"))
	job := writtenBy(branch, s.object(`
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: once, image: once}]}}}`))
	s.mustApply(create(settings), create(job))
	s.eventually("a Pod", func(context.Context) (bool, error) { return len(s.names("v1", "Pod")) > 0, nil })
	if reason := s.removeAll(branch); reason != "" {
		t.Errorf("reason = %q", reason)
	}
	if s.live(job) != nil || len(s.names("v1", "Pod")) > 0 {
		t.Error("workload of the Branch or its Pod still exists")
	}
	if s.live(settings) == nil {
		t.Error("object of the base was deleted")
	}
}
