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

	"github.com/configbutler/slipstream/pkg/controller"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
	"github.com/configbutler/slipstream/pkg/pipeline/observe"
	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// workers is the number of pipelines that are reconciled at the same time.
	workers = 4
	// writePeriod is the minimum time between two writes of a status.
	writePeriod = time.Second
)

// pipelines delivers changes to the sinks of all pipelines, for one term of leadership.
type pipelines struct {
	config    Config
	shared    *controller.Shared
	api       typed.SyncPipelineInterface
	informers externalversions.SharedInformerFactory
	observer  *observe.Observer
	rows      *table.Table
	events    *events
	// queue has the names of the pipelines to reconcile.
	queue *controller.Queue[string]

	mu sync.Mutex
	// running has the running pipelines by name.
	running map[string]*pipeline
}

// newPipelines returns pipelines. They do nothing until runUntil is called.
func newPipelines(config Config, shared *controller.Shared) (*pipelines, error) {
	c := &pipelines{
		config: config, shared: shared, api: shared.Client.ConfigbutlerV1alpha1().SyncPipelines(), running: map[string]*pipeline{},
		informers: shared.Informers, rows: shared.Store.Table(ledger.TableName), events: newEvents(shared.Events),
		queue: controller.NewQueue[string](controllerName, shared.Clock),
	}
	shared.Cleanup(c.queue.ShutDown)
	c.observer = observe.New(observe.Config{
		Definitions: watch.Objects(shared.Cluster.Dynamic), Instances: watch.Metadata(shared.Cluster.Metadata),
		Clock: shared.Clock, Changed: c.updateStatuses,
	})
	shared.Cleanup(c.observer.ShutDown)
	return c, c.listen()
}

// runUntil reconciles pipelines until ctx is done, and then stops all deliveries.
func (c *pipelines) runUntil(ctx context.Context) error {
	if err := c.removeOrphanedRows(ctx); err != nil {
		return err
	}
	var group wait.Group
	defer group.Wait()
	// A type that appears is sent once each pipeline that selects it has been reviewed again.
	defer c.shared.Types.Subscribe(func(*watch.Snapshot) { c.enqueueAll() })()
	group.StartWithContext(ctx, c.observer.Run)
	group.StartWithContext(ctx, c.measureUntil)
	c.queue.Run(ctx, workers, c.reconcile)
	for _, p := range c.current() {
		p.stop()
	}
	return nil
}

// removeOrphanedRows removes the ledgers of sinks that were deleted while no process led.
func (c *pipelines) removeOrphanedRows(ctx context.Context) error {
	existing, err := c.ledgers()
	if err != nil {
		return err
	}
	if err := sweep(ctx, c.rows, existing.Has); err != nil {
		return fmt.Errorf("remove the ledgers of deleted sinks: %w", err)
	}
	return nil
}

// ledgers returns the prefixes of the ledgers of existing sinks.
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

// current returns the running pipelines.
func (c *pipelines) current() []*pipeline {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.running))
}

// updateStatuses enqueues an update of each status.
func (c *pipelines) updateStatuses() {
	for _, p := range c.current() {
		p.changed()
	}
}
