// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
)

// observer is a Handler that records the states of watches only.
type observer struct {
	mutex sync.Mutex
	// states are the failures by watch, nil for an open watch.
	states map[kubewatch.Watch]error
}

var _ kubewatch.Handler = &observer{}

func (o *observer) Listed(context.Context, kubewatch.Watch, string) {}

func (o *observer) Changed(context.Context, kubewatch.Watch, kubewatch.Change) {}

func (o *observer) State(watch kubewatch.Watch, failure error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.states[watch] = failure
}

func (o *observer) watching(watch kubewatch.Watch) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	failure, known := o.states[watch]
	return known && failure == nil
}

// failure returns why the watch is not open, nil if it is open or unknown.
func (o *observer) failure(watch kubewatch.Watch) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.states[watch]
}

// consumer tracks the resourceVersion of every object of one Watch, like the mirror: a worker lists after every Listed, applies
// changes in order, and ignores those that the list includes.
type consumer struct {
	*observer
	watch  kubewatch.Watch
	lister *kubewatch.Lister
	wake   chan struct{}

	mutex    sync.Mutex
	due      bool
	changes  []kubewatch.Change
	versions map[types.NamespacedName]string
	// listedAt is the resourceVersion of the last list.
	listedAt string
	// restarts counts the calls of Listed, lists the resulting lists.
	restarts, lists int
}

// runConsumer runs a consumer and its streams until the test ends.
func runConsumer(t *testing.T, client dynamic.Interface, watch kubewatch.Watch) (*consumer, *kubewatch.Streams) {
	t.Helper()
	c := &consumer{
		observer: newObserver(), watch: watch, lister: kubewatch.NewLister(kubewatch.Objects(client)),
		wake: make(chan struct{}, 1), versions: map[types.NamespacedName]string{},
	}
	run(t, c.work)
	return c, runStreams(t, client, c)
}

// consume runs a consumer for a watch.
func consume(t *testing.T, client dynamic.Interface, watch kubewatch.Watch) *consumer {
	t.Helper()
	c, streams := runConsumer(t, client, watch)
	if err := streams.Set(t.Context(), []kubewatch.Watch{watch}); err != nil {
		t.Fatal(err)
	}
	return c
}

func newObserver() *observer {
	return &observer{states: map[kubewatch.Watch]error{}}
}

func runStreams(t *testing.T, client dynamic.Interface, handler kubewatch.Handler) *kubewatch.Streams {
	t.Helper()
	streams := kubewatch.NewStreams("test", kubewatch.Objects(client), handler)
	run(t, streams.Run)
	return streams
}

func (c *consumer) Listed(context.Context, kubewatch.Watch, string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.due = true
	c.restarts++
	c.signal()
}

func (c *consumer) Changed(_ context.Context, _ kubewatch.Watch, change kubewatch.Change) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.changes = append(c.changes, change)
	c.signal()
}

func (c *consumer) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *consumer) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		if c.take() {
			// Retry until the list succeeds or ctx is done.
			_ = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, c.list)
		}
	}
}

// take applies the received changes and reports whether a list is due.
func (c *consumer) take() (due bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, change := range c.changes {
		c.apply(change)
	}
	due, c.due, c.changes = c.due, false, nil
	return due
}

func (c *consumer) apply(change kubewatch.Change) {
	version := change.Object.GetResourceVersion()
	order, err := resourceversion.CompareResourceVersion(version, c.listedAt)
	switch {
	case err == nil && order <= 0:
	case change.Operation == kubewatch.Delete:
		delete(c.versions, nameOf(change.Object))
	default:
		c.versions[nameOf(change.Object)] = version
	}
}

// list replaces the content with a list. It is retried after an error.
func (c *consumer) list(ctx context.Context) (done bool, _ error) {
	versions := map[types.NamespacedName]string{}
	version, err := c.lister.List(ctx, c.watch, func(o *unstructured.Unstructured, _ string) error {
		versions[nameOf(o)] = o.GetResourceVersion()
		return nil
	})
	if err == nil {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.versions, c.listedAt = versions, version
		c.lists++
	}
	return err == nil, nil
}

func (c *consumer) content() map[types.NamespacedName]string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return maps.Clone(c.versions)
}

func (c *consumer) has(namespace, name string) bool {
	_, ok := c.content()[types.NamespacedName{Namespace: namespace, Name: name}]
	return ok
}

func (c *consumer) counts() (restarts, lists int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.restarts, c.lists
}

func nameOf(o *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// differences returns the differences of two contents, for messages.
func differences(got, want map[types.NamespacedName]string) string {
	var lines []string
	for name, version := range want {
		if got[name] != version {
			lines = append(lines, name.String()+": got "+got[name]+", want "+version)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			lines = append(lines, name.String()+": should be deleted")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
