// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
	"github.com/configbutler/slipstream/pkg/pipeline/observe"
	"github.com/configbutler/slipstream/test/testkit"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	newWidgets  = schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"}
)

const shop types.UID = "shop"

// everything selects all objects.
var everything = observe.Selection{Definitions: &observe.DefinitionFilter{}, Instances: &observe.InstanceFilter{
	Exclude: []string{"customresourcedefinitions.apiextensions.k8s.io"},
}}

// instances selects types.
func instances(resources ...string) observe.Selection {
	return observe.Selection{Instances: &observe.InstanceFilter{Resources: resources}}
}

func typeOf(resource schema.GroupVersionResource, kind string) watch.Type {
	return watch.Type{Resource: resource, Kind: kind, Namespaced: true, Preferred: true, Watchable: true}
}

var (
	configMapType  = typeOf(configMaps, "ConfigMap")
	secretType     = typeOf(secrets, "Secret")
	definitionType = typeOf(definitions, "CustomResourceDefinition")
	widgetType     = typeOf(widgets, "Widget")
	newWidgetType  = typeOf(newWidgets, "Widget")
)

// target is a Target that stores the reported objects and records changes of them.
type target struct {
	mutex sync.Mutex
	known map[item.Key]item.Item
	news  []string
	calls int
	// urgencies counts the upserts.
	urgencies map[ledger.Urgency]int
	// upserting, if set, is called before each upsert.
	upserting func()
}

var _ observe.Target = &target{}

func newTarget(known ...item.Item) *target {
	t := &target{known: map[item.Key]item.Item{}, urgencies: map[ledger.Urgency]int{}}
	for _, it := range known {
		t.known[it.Key] = it
	}
	return t
}

func (t *target) Upsert(it item.Item, how ledger.Urgency) {
	if t.upserting != nil {
		t.upserting()
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.calls++
	t.urgencies[how]++
	before, ok := t.known[it.Key]
	if t.known[it.Key] = it; !ok || before.Digest() != it.Digest() {
		t.news = append(t.news, "+"+it.Key.String())
	}
}

func (t *target) Remove(key item.Key) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.calls++
	t.remove(key)
}

func (t *target) remove(key item.Key) {
	if _, ok := t.known[key]; ok {
		delete(t.known, key)
		t.news = append(t.news, "-"+key.String())
	}
}

func (t *target) Retain(kind item.Kind, apiVersion, objectKind string, present func(item.Key) bool) {
	t.retain(func(key item.Key) bool {
		return key.Kind != kind ||
			kind == item.Instance && (key.APIVersion != apiVersion || key.ObjectKind != objectKind) || present(key)
	})
}

func (t *target) RetainTypes(keep func(item.Kind, string, string) bool) {
	t.retain(func(key item.Key) bool {
		if key.Kind == item.CustomResourceDefinition {
			return keep(key.Kind, "", "")
		}
		return keep(key.Kind, key.APIVersion, key.ObjectKind)
	})
}

func (t *target) retain(keep func(item.Key) bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.calls++
	for key := range maps.Clone(t.known) {
		if !keep(key) {
			t.remove(key)
		}
	}
}

// callCount returns the number of calls.
func (t *target) callCount() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.calls
}

// urgency returns the number of upserts with an urgency.
func (t *target) urgency(how ledger.Urgency) int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.urgencies[how]
}

// keys returns the keys of the stored objects, in order.
func (t *target) keys() []string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	keys := []string{}
	for key := range t.known {
		keys = append(keys, key.String())
	}
	slices.Sort(keys)
	return keys
}

// takeChanges returns the recorded changes since the last call.
func (t *target) takeChanges() []string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	news := t.news
	t.news = nil
	return news
}

// get returns the stored item of an object.
func (t *target) get(key string) (item.Item, bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	parsed, err := item.ParseKey(key)
	it, ok := t.known[parsed]
	return it, ok && err == nil
}

// expect waits until exactly these objects are stored.
func (t *target) expect(tb testing.TB, keys ...string) {
	tb.Helper()
	slices.Sort(keys)
	testkit.Eventually(tb, "the stored objects", func() error {
		if diff := cmp.Diff(append([]string{}, keys...), t.keys()); diff != "" {
			return fmt.Errorf("stored objects (-want +got):\n%s", diff)
		}
		return nil
	})
}

// fixture is a cluster and an observer.
type fixture struct {
	testing.TB
	server   *apiServer
	observer *observe.Observer
	// types are those that the cluster serves.
	types *watch.Snapshot
	// pipelines are those that set has set last.
	pipelines map[types.UID]setting
}

// setting is what a pipeline selects, and its target.
type setting struct {
	selection observe.Selection
	target    observe.Target
}

// newFixture returns a fixture that serves some types, without objects.
func newFixture(tb testing.TB, served ...watch.Type) *fixture {
	tb.Helper()
	server, config := newAPIServer(tb)
	whole, err := dynamic.NewForConfig(config)
	if err != nil {
		tb.Fatal(err)
	}
	bare, err := metadata.NewForConfig(config)
	if err != nil {
		tb.Fatal(err)
	}
	s := &fixture{TB: tb, server: server, pipelines: map[types.UID]setting{}}
	for _, t := range served {
		server.serve(t.Resource)
	}
	s.discovered(served...)
	s.observer = observe.New(observe.Config{Definitions: watch.Objects(whole), Instances: watch.Metadata(bare)})
	tb.Cleanup(s.observer.ShutDown)
	return s
}

// run runs the observer until the test ends.
func (s *fixture) run() *fixture {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.observer.Run(ctx)
	}()
	s.Cleanup(func() {
		cancel()
		<-done
	})
	return s
}

func (s *fixture) set(uid types.UID, selection observe.Selection, to observe.Target) {
	s.Helper()
	if err := s.observer.Set(s.Context(), uid, s.types, selection, to); err != nil {
		s.Fatal(err)
	}
	s.pipelines[uid] = setting{selection, to}
}

func (s *fixture) unset(uid types.UID) {
	s.Helper()
	if err := s.observer.Unset(s.Context(), uid); err != nil {
		s.Fatal(err)
	}
	delete(s.pipelines, uid)
}

// discovered changes the types that the cluster serves, as a controller that allows them all.
func (s *fixture) discovered(served ...watch.Type) {
	s.Helper()
	s.serve(watch.NewSnapshot(served, nil))
}

func (s *fixture) serve(snapshot *watch.Snapshot) {
	s.Helper()
	s.types = snapshot
	for uid, pipeline := range s.pipelines {
		s.set(uid, pipeline.selection, pipeline.target)
	}
}

// listed waits until everything was reported to a pipeline, and its watches are open.
func (s *fixture) listed(uid types.UID) {
	s.Helper()
	testkit.Eventually(s, "all objects are reported", func() error {
		if state := s.observer.State(uid); !state.Listed || len(state.Failures) > 0 {
			return fmt.Errorf("state: %+v", state)
		}
		return nil
	})
}

// failing waits until a failure contains all the words.
func (s *fixture) failing(uid types.UID, words ...string) {
	s.Helper()
	testkit.Eventually(s, "a failure", func() error {
		failures := s.observer.State(uid).Failures
		for _, failure := range failures {
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(failure, word) }) {
				return nil
			}
		}
		return fmt.Errorf("failures: %q, want one with %q", failures, words)
	})
}

// object returns an object with labels only.
func object(namespace, name, uid string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetUID(types.UID(uid))
	return o
}

func labelled(o *unstructured.Unstructured, value string) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetLabels(map[string]string{"app": value})
	return o
}

// definition returns the definition of a plural in example.com.
func definition(plural, kind string, established bool) *unstructured.Unstructured {
	o := object("", plural+".example.com", plural)
	o.SetAPIVersion("apiextensions.k8s.io/v1")
	o.SetKind("CustomResourceDefinition")
	is := "False"
	if established {
		is = "True"
	}
	o.Object["spec"] = map[string]any{"group": "example.com", "names": map[string]any{"plural": plural, "kind": kind}}
	o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": is}}}
	return o
}

// Keys as the target prints them.
func configMap(name string) string { return "Instance//v1/ConfigMap/shop/" + name }
func widget(name string) string    { return "Instance/example.com/v1/Widget/shop/" + name }
func defined(plural, kind string) string {
	return "CustomResourceDefinition///" + kind + "//" + plural + ".example.com"
}
