// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/environment/apply"
)

const manager = "slipstream"

// fixture is a namespace of a test with an applier.
type fixture struct {
	*testing.T
	namespace string
	client    dynamic.Interface
	mapper    meta.RESTMapper
	applier   *apply.Applier
}

// newFixture returns a fixture whose namespace does not exist.
func newFixture(t *testing.T, namespace string) *fixture {
	t.Helper()
	config, err := cluster.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	return &fixture{t, namespace, client, mapper, &apply.Applier{
		Client: client, Mapper: mapper, Manager: manager,
		Limiter: flowcontrol.NewTokenBucketRateLimiter(200, 50), Concurrency: 8,
	}}
}

// newTarget returns a fixture with objects in its namespace, applied by the administrator.
func newTarget(t *testing.T, namespace string, objects ...string) *fixture {
	t.Helper()
	s := newFixture(t, namespace)
	s.put("{apiVersion: v1, kind: Namespace, metadata: {name: " + namespace + "}}")
	for _, text := range objects {
		s.put(text)
	}
	s.waitForAccount()
	return s
}

// waitForAccount waits for the default ServiceAccount, which Pods need.
func (s *fixture) waitForAccount() {
	s.Helper()
	account := s.object("{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}")
	s.eventually("the account", func(context.Context) (bool, error) { return s.live(account) != nil, nil })
}

func (s *fixture) object(text string) *unstructured.Unstructured {
	s.Helper()
	o := &unstructured.Unstructured{}
	content, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "TARGET", s.namespace)))
	if err == nil {
		err = o.UnmarshalJSON(content)
	}
	if err != nil {
		s.Fatal(err)
	}
	return o
}

func (s *fixture) resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	s.Helper()
	kind := o.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		s.Fatal(err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return s.client.Resource(mapping.Resource)
	}
	return s.client.Resource(mapping.Resource).Namespace(s.namespace)
}

// put applies an object as the administrator.
func (s *fixture) put(text string) *unstructured.Unstructured {
	s.Helper()
	return s.putAs("administrator", text)
}

func (s *fixture) putAs(by, text string) *unstructured.Unstructured {
	s.Helper()
	o := s.object(text)
	applied, err := s.resource(o).Apply(s.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: by, Force: true})
	if err != nil {
		s.Fatal(err)
	}
	return applied
}

// live returns the object in the cluster, nil if it does not exist.
func (s *fixture) live(o *unstructured.Unstructured) *unstructured.Unstructured {
	s.Helper()
	found, err := s.resource(o).List(s.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + o.GetName()})
	if err != nil {
		s.Fatal(err)
	}
	if len(found.Items) == 0 {
		return nil
	}
	return &found.Items[0]
}

func (s *fixture) delete(o *unstructured.Unstructured) {
	s.Helper()
	if err := s.resource(o).Delete(s.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *fixture) target() apply.Target { return apply.Target{Namespace: s.namespace} }

// apply applies steps, and fails the test on an error.
func (s *fixture) apply(steps ...apply.Step) apply.Report {
	s.Helper()
	report, err := s.applier.Apply(s.Context(), s.target(), steps, nil)
	if err != nil {
		s.Fatal(err)
	}
	return report
}

// mustApply applies steps, which must all be written, and returns the written objects.
func (s *fixture) mustApply(steps ...apply.Step) []*unstructured.Unstructured {
	s.Helper()
	report := s.apply(steps...)
	if !report.IsClean() || len(report.Written) != len(steps) {
		s.Fatalf("%d of %d written: %q", len(report.Written), len(steps), lines(report))
	}
	var written []*unstructured.Unstructured
	for _, w := range report.Written {
		written = append(written, w.Object)
	}
	return written
}

// expectRefused applies steps, of which none may be written, and returns the reasons.
func (s *fixture) expectRefused(steps ...apply.Step) []string {
	s.Helper()
	report := s.apply(steps...)
	if report.IsClean() || len(report.Written) > 0 {
		s.Fatalf("written %d, %q", len(report.Written), lines(report))
	}
	for _, step := range steps {
		switch {
		case step.Verb == apply.Create && len(report.Conflicts) == 0 && s.live(step.Apply) != nil:
			s.Errorf("%s exists", step.Apply.GetName())
		case step.Verb == apply.Delete && s.live(step.Live) == nil:
			s.Errorf("%s was deleted", step.Live.GetName())
		}
	}
	return lines(report)
}

// lines returns the refusals and conflicts of a report.
func lines(report apply.Report) []string {
	var out []string
	for _, refusal := range report.Refusals {
		out = append(out, fmt.Sprintf("%s %s: %s", refusal.Object, refusal.Field, refusal.Message))
	}
	for _, conflict := range report.Conflicts {
		out = append(out, conflict.Message)
	}
	return out
}

func create(o *unstructured.Unstructured) apply.Step {
	return apply.Step{Verb: apply.Create, Apply: o}
}

func update(live, next *unstructured.Unstructured) apply.Step {
	return apply.Step{Verb: apply.Update, Live: live, Apply: next}
}

func remove(live *unstructured.Unstructured) apply.Step {
	return apply.Step{Verb: apply.Delete, Live: live}
}

func (s *fixture) eventually(what string, condition func(context.Context) (bool, error)) {
	s.Helper()
	if err := wait.PollUntilContextTimeout(s.Context(), 50*time.Millisecond, patience, true, condition); err != nil {
		s.Fatalf("waiting for %s: %v", what, err)
	}
}

// text returns the field of an object at a path as text, empty if there is none.
func text(o *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
