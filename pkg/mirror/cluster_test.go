// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// cluster is a source cluster in memory. It returns consistent lists and delivers later changes in order, like pkg/kube/watch.
type cluster struct {
	mu      sync.Mutex
	version int
	objects map[outbox.Object]*unstructured.Unstructured
	// files are the expected files in Git.
	files      map[outbox.Object]rendered
	namespaces map[string]kubewatch.Namespace
	feeds      map[kubewatch.Watch]*feed
	// refuse has the errors of the types that cannot be listed.
	refuse map[schema.GroupVersionResource]error
	// lists counts the requested lists.
	lists int
	// before and after, if set, are called once: before the next list is read, and after it was read and before it is returned.
	before, after func()
}

var _ lister = &cluster{}

// feed is one watch.
type feed struct {
	stop    context.CancelFunc
	done    chan struct{}
	changes chan kubewatch.Change
}

func newCluster() *cluster {
	c := &cluster{
		version: 100, objects: map[outbox.Object]*unstructured.Unstructured{},
		files: map[outbox.Object]rendered{}, namespaces: map[string]kubewatch.Namespace{},
		feeds: map[kubewatch.Watch]*feed{}, refuse: map[schema.GroupVersionResource]error{},
	}
	for _, name := range []string{"shop", "dev"} {
		c.namespaces[name] = kubewatch.Namespace{Name: name, Labels: labels.Set{"team": name}}
	}
	return c
}

// configMap names a ConfigMap of namespace shop.
func configMap(name string) outbox.Object {
	return outbox.Object{Version: "v1", Resource: "configmaps", Namespace: "shop", Name: name}
}

// put creates or updates an object with the content value.
func (c *cluster) put(o outbox.Object, value string, change ...func(*unstructured.Unstructured)) {
	object := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"value": value}}}
	object.SetAPIVersion(o.GroupVersionResource().GroupVersion().String())
	object.SetKind(strings.TrimSuffix(o.Resource, "s"))
	object.SetNamespace(o.Namespace)
	object.SetName(o.Name)
	for _, change := range change {
		change(object)
	}
	file, err := render(o.GroupVersionResource(), object, true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil { // An object that cannot be written has no file.
		c.files[o] = file
	}
	operation := kubewatch.Update
	if _, ok := c.objects[o]; !ok {
		operation = kubewatch.Create
	}
	c.objects[o] = object
	c.happened(operation, o, object)
}

func (c *cluster) remove(o outbox.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if object, ok := c.objects[o]; ok {
		delete(c.objects, o)
		c.happened(kubewatch.Delete, o, object)
	}
}

// happened sends a change to the watches. The caller holds mu.
func (c *cluster) happened(operation kubewatch.Operation, o outbox.Object, object *unstructured.Unstructured) {
	c.version++
	object.SetResourceVersion(strconv.Itoa(c.version))
	for watch, feed := range c.feeds {
		if watch.Covers(kubewatch.Watch{Resource: o.GroupVersionResource(), Namespace: o.Namespace}) {
			feed.changes <- kubewatch.Change{Operation: operation, Object: object.DeepCopy()}
		}
	}
}

// List implements lister.
func (c *cluster) List(
	ctx context.Context, watch kubewatch.Watch, each func(object *unstructured.Unstructured, resourceVersion string) error,
) (string, error) {
	c.mu.Lock()
	before, after := c.before, c.after
	c.before, c.after = nil, nil
	c.lists++
	c.mu.Unlock()
	if before != nil {
		before()
	}
	c.mu.Lock()
	err, version := c.refuse[watch.Resource], strconv.Itoa(c.version)
	var objects []*unstructured.Unstructured
	for _, o := range slices.SortedFunc(maps.Keys(c.objects),
		func(a, b outbox.Object) int { return strings.Compare(a.String(), b.String()) }) {
		if watch.Covers(kubewatch.Watch{Resource: o.GroupVersionResource(), Namespace: o.Namespace}) {
			objects = append(objects, c.objects[o].DeepCopy())
		}
	}
	c.mu.Unlock()
	if after != nil {
		after()
	}
	for _, object := range objects {
		if err == nil {
			err = each(object, version)
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	return version, err
}

// follow starts and stops watches so that the given ones run, like watch.Streams.
func (c *cluster) follow(ctx context.Context, handler kubewatch.Handler, watches ...kubewatch.Watch) {
	c.unfollow(watches...)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, watch := range watches {
		if _, ok := c.feeds[watch]; !ok {
			ctx, cancel := context.WithCancel(ctx)
			f := &feed{stop: cancel, done: make(chan struct{}), changes: make(chan kubewatch.Change, 1<<14)}
			c.feeds[watch] = f
			go f.run(ctx, handler, watch, strconv.Itoa(c.version))
		}
	}
}

// unfollow stops all watches except the given ones.
func (c *cluster) unfollow(except ...kubewatch.Watch) {
	c.mu.Lock()
	var ending []*feed
	for watch, f := range c.feeds {
		if !slices.Contains(except, watch) {
			ending = append(ending, f)
			delete(c.feeds, watch)
		}
	}
	c.mu.Unlock()
	for _, f := range ending {
		f.stop()
		<-f.done
	}
}

func (f *feed) run(ctx context.Context, handler kubewatch.Handler, watch kubewatch.Watch, version string) {
	defer close(f.done)
	defer f.stop()
	handler.Listed(ctx, watch, version)
	handler.State(watch, nil)
	for {
		select {
		case change := <-f.changes:
			handler.Changed(ctx, watch, change)
		case <-ctx.Done():
			return
		}
	}
}

// namespace is a namespaceLookup.
func (c *cluster) namespace(name string) (kubewatch.Namespace, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	namespace, ok := c.namespaces[name]
	return namespace, ok
}

// setNamespace changes a namespace and returns the change.
func (c *cluster) setNamespace(after kubewatch.Namespace) kubewatch.NamespaceChange {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.namespaces[after.Name]
	c.namespaces[after.Name] = after
	return kubewatch.NamespaceChange{Before: &before, After: &after}
}

// setRefused makes lists of a type fail with an error; nil makes them succeed.
func (c *cluster) setRefused(resource schema.GroupVersionResource, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse[resource] = err
}

func (c *cluster) beforeList(call func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = call
}

func (c *cluster) afterList(call func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after = call
}

func (c *cluster) get(o outbox.Object) *unstructured.Unstructured {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects[o].DeepCopy()
}

// listed returns how often something was listed.
func (c *cluster) listed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists
}

// rendered returns the expected blobs of objects by path.
func (c *cluster) rendered(selected func(outbox.Object) bool) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	blobs := map[string]string{}
	for o := range c.objects {
		if file, ok := c.files[o]; ok && selected(o) {
			blobs[file.path] = file.hash.String()
		}
	}
	return blobs
}
