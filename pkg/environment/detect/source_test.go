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

// resource returns the resource of an object, whose name has its type as a prefix, such as secret-database.
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

// hash returns the hash of an object of production, empty if it does not exist.
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

// sync does what a run does: afterwards the environment has exactly the current copies of these objects.
func (s *fixture) sync(environment string, names ...string) {
	s.Helper()
	var records []v1alpha1.EnvironmentDependencyRecord
	for _, name := range names {
		records = append(records, s.copied(environment, name))
	}
	s.record(environment, records)
}

// copied returns the record of a current copy.
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

// record writes the records of an environment's copies.
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

// audit reports the authors of changes, who are in the annotation by.
type audit struct {
	// asked counts the submitted events; thinks delays the authors.
	asked  atomic.Int64
	thinks atomic.Bool
	// kept are the objects of the observed events.
	mu   sync.Mutex
	kept []*unstructured.Unstructured
	// found has the authors of changes that comparisons find, by name of the object.
	found map[string]string
	// late is whether reports about the changes that comparisons find have not arrived.
	late atomic.Bool
}

func newAudit() *audit { return &audit{found: map[string]string{}} }

var _ detect.Authors = &audit{}

// Start does nothing.
func (*audit) Start(context.Context, *wait.Group) {}

// Listed does nothing.
func (*audit) Listed(schema.GroupVersionResource, string) {}

// Observe keeps the object of an event.
func (a *audit) Observe(event attribution.Event) { a.keep(event) }

func (a *audit) keep(event attribution.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept = append(a.kept, event.Object)
}

// Submit delivers the author at once, who is in the uid.
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

// FindSince returns the author of an unwatched change.
func (a *audit) FindSince(event attribution.Event, _ time.Time) attribution.Author {
	a.mu.Lock()
	defer a.mu.Unlock()
	if user := a.found[event.Object.GetName()]; user != "" && !a.late.Load() {
		return known(user)
	}
	return attribution.Author{Signal: attribution.Unknown}
}

// AuditWait returns a second while reports are late.
func (a *audit) AuditWait(attribution.Event) time.Duration {
	if a.late.Load() {
		return time.Second
	}
	return 0
}

// WaitingIn reports whether authors are delayed.
func (a *audit) WaitingIn(string) bool { return a.thinks.Load() }

// by sets the author of a change.
func by(user string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetUID(types.UID(user + "-" + o.GetName())) }
}

// differing returns the objects whose copies differ from the source, in order.
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

// seen returns the objects with a recorded version that differs from the copy, in order.
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
