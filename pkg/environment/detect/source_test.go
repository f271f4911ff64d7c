// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/environment/detect"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

// resource is that of objects whose name says of which type they are, as in secret-database.
func resource(name string) (schema.GroupVersionResource, string) {
	word, _, _ := strings.Cut(name, "-")
	kinds := map[string]string{"secret": "Secret", "service": "Service", "account": "ServiceAccount"}
	kind, ok := kinds[word]
	if !ok {
		kind = "ConfigMap"
	}
	return corev1.SchemeGroupVersion.WithResource(strings.ToLower(kind) + "s"), kind
}

// put creates or updates an object of production.
func (s *fixture) put(name, value string, changes ...func(*unstructured.Unstructured)) {
	s.Helper()
	version := strconv.FormatInt(s.version.Add(1), 10)
	in, kind := resource(name)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind,
		"metadata": map[string]any{"namespace": production, "name": name, "uid": "uid-of-" + name, "resourceVersion": version},
	}}
	switch kind {
	case "ConfigMap", "Secret":
		object.Object["data"] = map[string]any{"value": value}
	default:
		object.SetLabels(map[string]string{"value": value})
	}
	for _, change := range changes {
		change(object)
	}
	err := s.source.Tracker().Update(in, object, production)
	if apierrors.IsNotFound(err) {
		err = s.source.Tracker().Create(in, object, production)
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *fixture) remove(name string) {
	s.Helper()
	in, _ := resource(name)
	if err := s.source.Tracker().Delete(in, production, name); err != nil {
		s.Fatal(err)
	}
}

// hash is that of an object of production, empty if there is none.
func (s *fixture) hash(name string) string {
	s.Helper()
	in, _ := resource(name)
	object, err := s.source.Tracker().Get(in, production, name)
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		s.Fatal(err)
	}
	sum, err := plan.Hash(planner.Hasher, object.(*unstructured.Unstructured))
	if err != nil {
		s.Fatal(err)
	}
	return sum
}

// sync does what a run does: the environment has copies of these objects as they are now, and of nothing else.
func (s *fixture) sync(environment string, names ...string) {
	s.Helper()
	var records []v1alpha1.EnvironmentDependencyRecord
	for _, name := range names {
		records = append(records, s.copied(environment, name))
	}
	s.record(environment, records)
}

// copied is what is recorded of an object that is copied as it is now.
func (s *fixture) copied(environment, name string) v1alpha1.EnvironmentDependencyRecord {
	s.Helper()
	_, kind := resource(name)
	record := v1alpha1.EnvironmentDependencyRecord{
		Environment: environment, Type: v1alpha1.DependencyType(kind), Hash: s.hash(name), LastDiscoveredAt: &metav1.Time{Time: s.clock.Now()},
		Source: v1alpha1.NamespacedObjectReference{Namespace: production, Name: name},
		Target: v1alpha1.NamespacedObjectReference{Namespace: "shop-" + environment, Name: name},
	}
	record.Missing = record.Hash == ""
	for _, before := range s.dependencies(environment) {
		if before.Status.Source == record.Source && before.Status.Type == record.Type && record.Missing {
			record.Hash = before.Status.Hash
		}
	}
	return record
}

// record writes what an environment has copies of.
func (s *fixture) record(name string, records []v1alpha1.EnvironmentDependencyRecord) {
	s.Helper()
	environment, wanted := s.environment(name), map[string]bool{}
	for _, record := range records {
		dependency := &v1alpha1.EnvironmentDependency{Status: record}
		dependency.Namespace, dependency.Name = environment.Namespace, v1alpha1.EnvironmentDependencyName(name, record.Type, record.Target.Name)
		dependency.Labels = map[string]string{v1alpha1.LabelEnvironment: name}
		dependency.OwnerReferences = ownedBy(environment)
		wanted[dependency.Name] = true
		s.api.Put(dependency)
	}
	for _, before := range s.dependencies(name) {
		if !wanted[before.Name] {
			fakeapi.Delete[*v1alpha1.EnvironmentDependency](s.api, before.Namespace, before.Name)
		}
	}
	s.index.Set(named(name), records)
}

// audit knows who made each change: whom the annotation by names.
type audit struct {
	// asked counts the events that were asked about; thinks says that it does not know yet.
	asked  atomic.Int64
	thinks atomic.Bool
	// kept are the objects of the events that it was told of.
	mu   sync.Mutex
	kept []*unstructured.Unstructured
	// found is who made what comparisons find, by name.
	found map[string]string
}

func newAudit() *audit { return &audit{found: map[string]string{}} }

var _ detect.Authors = &audit{}

// Start has nothing to do.
func (*audit) Start(context.Context, *wait.Group) {}

// Listed does not matter.
func (*audit) Listed(schema.GroupVersionResource, string) {}

// Observe keeps what it is told.
func (a *audit) Observe(event attribution.Event) { a.keep(event) }

func (a *audit) keep(event attribution.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = append(a.kept, event.Object)
}

// Submit knows at once: the uid names who it was.
func (a *audit) Submit(ctx context.Context, event attribution.Event, deliver func(context.Context, attribution.Author)) error {
	a.keep(event)
	user, _, _ := strings.Cut(string(event.Object.GetUID()), "-")
	deliver(ctx, known(user))
	a.asked.Add(1)
	return nil
}

func known(user string) attribution.Author {
	if user == "" || user == "uid" {
		user = defaultAuthor
	}
	return attribution.Author{Signal: attribution.Audit, Actor: attribution.Actor{Username: user}}
}

// FindSince knows who made what nobody has seen.
func (a *audit) FindSince(event attribution.Event, _ time.Time) attribution.Author {
	a.mu.Lock()
	defer a.mu.Unlock()
	if user := a.found[event.Object.GetName()]; user != "" {
		return known(user)
	}
	return attribution.Author{Signal: attribution.Unknown}
}

// WaitingIn says whether it still thinks.
func (a *audit) WaitingIn(string) bool { return a.thinks.Load() }

// by has a user make a change.
func by(user string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetUID(types.UID(user + "-" + o.GetName())) }
}

// differing are the objects of which an environment has another version than the source, in order.
func (s *fixture) differing(environment string) (names []string) {
	s.Helper()
	for _, d := range s.dependencies(environment) {
		if now := s.hash(d.Status.Source.Name); d.Status.Missing != (now == "") || !d.Status.Missing && now != d.Status.Hash {
			names = append(names, d.Status.Source.Name)
		}
	}
	slices.Sort(names)
	return names
}

// seen are the objects of which another version has been told of than was copied, in order.
func (s *fixture) seen(environment string) (names []string) {
	s.Helper()
	for _, d := range s.dependencies(environment) {
		if d.Status.SeenHash != "" {
			names = append(names, d.Status.Source.Name)
		}
	}
	slices.Sort(names)
	return names
}
