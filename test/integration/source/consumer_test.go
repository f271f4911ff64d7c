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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/pkg/source"
)

// consumer keeps the resourceVersion of every object of one Watch, as a mirror does: a list after every Listed,
// changes beside it.
type consumer struct {
	lister *source.Lister

	mutex     sync.Mutex
	versions  map[types.NamespacedName]string
	seeding   *source.Seeding
	stopSeed  context.CancelFunc
	seeds     sync.WaitGroup
	listed    int
	seeded    int
	position  string
	states    map[source.Watch]source.WatchState
	deletions []string
}

func newConsumer(client dynamic.Interface) *consumer {
	return &consumer{
		lister: source.NewLister(client), versions: map[types.NamespacedName]string{},
		seeding: source.NewSeeding(), stopSeed: func() {}, states: map[source.Watch]source.WatchState{},
	}
}

// runStreams runs streams with the consumer as their handler until the test ends.
func (c *consumer) runStreams(t *testing.T, client dynamic.Interface, options source.StreamsOptions) *source.Streams {
	t.Helper()
	streams := source.NewStreams(client, c, options)
	run(t, func(ctx context.Context) {
		streams.Run(ctx)
		c.seeds.Wait()
	})
	return streams
}

func (c *consumer) Listed(ctx context.Context, watch source.Watch, _ string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.stopSeed()
	ctx, c.stopSeed = context.WithCancel(ctx)
	c.seeding = source.NewSeeding()
	c.listed++
	seeding := c.seeding
	c.seeds.Go(func() { c.seed(ctx, watch, seeding) })
}

// seed tries until it is done or given up.
func (c *consumer) seed(ctx context.Context, watch source.Watch, seeding *source.Seeding) {
	known := c.names()
	for ctx.Err() == nil {
		_, err := c.lister.List(ctx, watch, func(o *unstructured.Unstructured) error {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			if c.seeding == seeding && seeding.Listed(o) {
				c.versions[nameOf(o)] = o.GetResourceVersion()
			}
			return ctx.Err()
		})
		if err == nil {
			break
		}
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.seeding != seeding || ctx.Err() != nil {
		return
	}
	for _, name := range known {
		if seeding.Gone(name) {
			delete(c.versions, name)
		}
	}
	c.seeded++
}

func (c *consumer) Changed(_ context.Context, _ source.Watch, change source.Change) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.position = change.Object.GetResourceVersion()
	if !c.seeding.Changed(change) {
		return
	}
	if change.Operation == source.Delete {
		delete(c.versions, nameOf(change.Object))
		c.deletions = append(c.deletions, change.Object.GetName())
		return
	}
	c.versions[nameOf(change.Object)] = change.Object.GetResourceVersion()
}

func (c *consumer) Progressed(_ context.Context, _ source.Watch, resourceVersion string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.position = resourceVersion
}

func (c *consumer) State(watch source.Watch, state source.WatchState) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.states[watch] = state
}

func (c *consumer) names() []types.NamespacedName {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Collect(maps.Keys(c.versions))
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

func (c *consumer) counts() (listed, seeded int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.listed, c.seeded
}

func (c *consumer) state(watch source.Watch) source.WatchState {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.states[watch]
}

func nameOf(o *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// differences says in what two contents differ, for a message.
func differences(got, want map[types.NamespacedName]string) string {
	var lines []string
	for name, version := range want {
		if got[name] != version {
			lines = append(lines, name.String()+": got "+got[name]+", want "+version)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			lines = append(lines, name.String()+": should be gone")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
