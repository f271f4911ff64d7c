// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"

	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
	"github.com/configbutler/slipstream/pkg/pipeline/observe"
	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// workers is how many pipelines are looked at at once.
	workers = 4
	// What fails is tried again after retryMin, doubling up to retryMax.
	retryMin = 500 * time.Millisecond
	retryMax = time.Minute
	// writePeriod is how often a status is written at most.
	writePeriod = time.Second
)

// pipelines tells the sinks of all pipelines for one term of leadership.
type pipelines struct {
	config    Config
	edge      edge
	api       typed.SyncPipelineInterface
	informers externalversions.SharedInformerFactory
	catalogue *watch.Catalogue
	observer  *observe.Observer
	rows      *table.Table
	events    *events
	// queue has the names of the pipelines that are to be looked at.
	queue workqueue.TypedRateLimitingInterface[string]

	mu sync.Mutex
	// pipes are the pipelines that are carried out, by name.
	pipes map[string]*pipe
}

// tend tells sinks until ctx ends.
func tend(ctx context.Context, config Config, edge edge) error {
	ctx, cancel := context.WithCancel(ctx)
	var group wait.Group
	defer group.Wait()
	defer cancel()
	c, err := newPipelines(config, edge)
	defer c.queue.ShutDown()
	if err != nil {
		return err
	}
	defer c.informers.Shutdown()
	defer cancel()
	c.informers.StartWithContext(ctx)
	group.StartWithContext(ctx, c.catalogue.Run)
	if err := c.prepare(ctx); err != nil {
		return err
	}
	group.StartWithContext(ctx, c.observer.Run)
	group.StartWithContext(ctx, c.measureUntil)
	c.work(ctx)
	return nil
}

// work looks after pipelines until ctx ends, and then has everything stop.
func (c *pipelines) work(ctx context.Context) {
	var turns wait.Group
	for range workers {
		turns.StartWithContext(ctx, c.turns)
	}
	<-ctx.Done()
	c.queue.ShutDown()
	turns.Wait()
	for _, p := range c.current() {
		p.stop()
	}
}

// newPipelines returns pipelines that do nothing yet. Their queue is to be shut down also after an error.
func newPipelines(config Config, edge edge) (*pipelines, error) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryMin, retryMax)
	c := &pipelines{
		config: config, edge: edge, api: config.Slipstream.ConfigbutlerV1alpha1().SyncPipelines(), pipes: map[string]*pipe{},
		informers: externalversions.NewSharedInformerFactory(config.Slipstream, 0), rows: config.Store.Table(ledger.TableName),
		events: newEvents(edge.events),
		queue:  workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[string]{Clock: config.Clock}),
	}
	var err error
	if c.catalogue, err = watch.NewCatalogue(edge.discovery, edge.metadata, config.DiscoveryRefresh); err != nil {
		return c, fmt.Errorf("follow the types of the cluster: %w", err)
	}
	c.observer = observe.New(observe.Config{
		Catalogue: c.catalogue, Definitions: watch.Objects(edge.dynamic), Instances: watch.Metadata(edge.metadata),
		Clock: config.Clock, Changed: c.showAll,
	})
	return c, c.listen()
}

// prepare waits until it is known which pipelines there are, and what the cluster serves, and removes what pipelines that are gone have
// left.
func (c *pipelines) prepare(ctx context.Context) error {
	for kind, synced := range c.informers.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("read the %s: %w", kind, context.Cause(ctx))
		}
	}
	there, err := c.ledgers()
	if err != nil {
		return err
	}
	if err := sweep(ctx, c.rows, there.Has); err != nil {
		return fmt.Errorf("remove what sinks knew that are gone: %w", err)
	}
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		return c.catalogue.Snapshot() != nil, nil
	})
}

// ledgers are the prefixes of those that there are to be.
func (c *pipelines) ledgers() (sets.Set[string], error) {
	found, err := c.lister().List(everything)
	if err != nil {
		return nil, fmt.Errorf("read the SyncPipelines: %w", err)
	}
	out := sets.New[string]()
	for _, p := range found {
		for i := range p.Spec.Sinks {
			out.Insert(prefixOf(p, &p.Spec.Sinks[i]))
		}
	}
	return out, nil
}

// current are the pipelines that are carried out.
func (c *pipelines) current() []*pipe {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.pipes))
}

// showAll has the status of each tell what is new.
func (c *pipelines) showAll() {
	for _, p := range c.current() {
		p.changed()
	}
}
