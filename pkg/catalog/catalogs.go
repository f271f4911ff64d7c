// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/attribution/watched"
	"github.com/configbutler/slipstream/pkg/catalog/revisions"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

const (
	// workers is how many namespaces are recorded at once.
	workers = 4
	// What fails is tried again after retryMin, doubling up to retryMax.
	retryMin = 500 * time.Millisecond
	retryMax = time.Minute
)

// catalogs follows the sources of catalogs for one term of leadership.
type catalogs struct {
	config     Config
	informers  externalversions.SharedInformerFactory
	catalogue  *watch.Catalogue
	namespaces *watch.Namespaces
	streams    *watch.Streams
	authors    Authors
	watched    watched.Objects
	intake     *pending.Intake
	interests  *interests
	reach      *reach
	reader     *reader
	keeper     *keeper
	events     *events
	unseen     *unseen
	deleted    deletedCatalogs
	standing   Standing
	// lost are the catalogs whose editors may not read any more what they show.
	lost obstacles
	// queue has the namespaces that are to be looked at.
	queue workqueue.TypedRateLimitingInterface[string]
	// replan asks for another look at what is to be watched.
	replan chan struct{}
}

// run follows until ctx ends.
func run(ctx context.Context, config Config, edge edge) error {
	ctx, cancel := context.WithCancel(ctx)
	var group wait.Group
	defer group.Wait()
	defer cancel()
	c, err := newCatalogs(ctx, config, edge)
	defer c.queue.ShutDown()
	if err != nil {
		return err
	}
	defer c.informers.Shutdown()
	defer cancel()
	c.informers.StartWithContext(ctx)
	group.StartWithContext(ctx, c.catalogue.Run)
	group.StartWithContext(ctx, c.namespaces.Run)
	if err := c.prepare(ctx); err != nil {
		return err
	}
	if err := c.deleteOrphanedRevisions(ctx); err != nil {
		return err
	}
	if err := c.seed(ctx); err != nil {
		return err
	}
	c.watched.Set(c.watches())
	c.authors.Start(ctx, &group)
	group.StartWithContext(ctx, func(ctx context.Context) { c.intake.Run(ctx, c.intakeNotices(ctx)) })
	group.StartWithContext(ctx, func(ctx context.Context) { c.keeper.naming.run(ctx, c.queue.Add) })
	group.StartWithContext(ctx, c.streams.Run)
	group.StartWithContext(ctx, c.measureUntil)
	for range workers {
		group.StartWithContext(ctx, c.work)
	}
	c.watchUntil(ctx)
	return nil
}

// newCatalogs returns catalogs that do nothing yet. Their queue is to be shut down also after an error.
func newCatalogs(ctx context.Context, config Config, edge edge) (*catalogs, error) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryMin, retryMax)
	c := &catalogs{
		config: config, informers: externalversions.NewSharedInformerFactory(config.Slipstream, 0),
		interests: newInterests(), unseen: newUnseen(), authors: edge.authors, standing: edge.standing, replan: make(chan struct{}, 1),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[string]{Clock: config.Clock}),
	}
	var err error
	if c.catalogue, err = watch.NewCatalogue(edge.discovery, edge.metadata, config.DiscoveryRefresh); err != nil {
		return c, fmt.Errorf("follow the types of the source cluster: %w", err)
	}
	if c.namespaces, err = watch.NewNamespaces(edge.metadata); err != nil {
		return c, err
	}
	waiting := pending.Config{Clock: config.Clock, Capacity: config.Capacity, Metrics: intakeMetrics}
	if c.intake, err = pending.Open(ctx, config.Store.Table(pending.TableName), waiting); err != nil {
		return c, err
	}
	if c.authors == nil {
		c.authors = attribution.NewJoiner(attribution.Config{
			Controller: controllerName, MaxWait: config.AttributionMaxWait, Facts: config.Facts, Wanted: c.watched.Has,
		})
	}
	c.reach = newReach(config.Namespace, func(namespace string) bool {
		_, exists := c.namespaces.Get(namespace)
		return exists
	}, c.builder)
	c.reader = &reader{client: edge.dynamic, lister: watch.NewLister(watch.Objects(edge.dynamic)), types: c.catalogue.Snapshot}
	c.events = newEvents(edge.events, func() bool { return c.policy().Suspend.CatalogNotices })
	c.keeper = &keeper{
		api: config.Slipstream.ConfigbutlerV1alpha1(), records: config.Records, unseen: c.unseen, clock: config.Clock,
		revisions: revisions.New(config.Store),
		source:    c.reach.of, trouble: c.trouble, taken: c.interests.taken, events: c.events, naming: newNaming(config),
		author: c.authors.FindSince,
	}
	c.streams = watch.NewStreams(controllerName, watch.Objects(edge.dynamic), (*watchHandler)(c))
	return c, c.listen()
}

// prepare waits until everything is known that nothing may be concluded without.
func (c *catalogs) prepare(ctx context.Context) error {
	for kind, synced := range c.informers.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("read the %s: %w", kind, context.Cause(ctx))
		}
	}
	if !c.namespaces.WaitForSync(ctx) {
		return fmt.Errorf("read the namespaces: %w", context.Cause(ctx))
	}
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		return c.catalogue.Snapshot() != nil, nil
	})
}
