// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/attribution/watched"
	"github.com/configbutler/slipstream/pkg/catalog/revisions"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// workers is the number of source namespaces that are reconciled at the same time.
const workers = 4

// catalogs follows the sources of catalogs for one term of leadership.
type catalogs struct {
	config    Config
	shared    *controller.Shared
	informers externalversions.SharedInformerFactory
	streams   *watch.Streams
	authors   Authors
	watched   watched.Objects
	intake    *pending.Intake
	interests *interests
	reach     *reach
	reader    *reader
	keeper    *keeper
	events    *events
	unseen    *unseen
	deleted   deletedCatalogs
	// lost are the catalogs whose editors may not read any more what they show.
	lost obstacles
	// queue has the source namespaces to reconcile.
	queue *controller.Queue[string]
	// replan asks for another look at what is to be watched.
	replan chan struct{}
}

// newCatalogs returns catalogs that do nothing until run.
func newCatalogs(ctx context.Context, config Config, shared *controller.Shared) (*catalogs, error) {
	c := &catalogs{
		config: config, shared: shared, informers: shared.Informers,
		interests: newInterests(), unseen: newUnseen(), authors: config.Authors, replan: make(chan struct{}, 1),
		queue: controller.NewQueue[string](controllerName, shared.Clock),
	}
	shared.Cleanup(c.queue.ShutDown)
	var err error
	waiting := pending.Config{Clock: shared.Clock, Capacity: config.Capacity, Metrics: intakeMetrics}
	if c.intake, err = pending.Open(ctx, shared.Store.Table(pending.TableName), waiting); err != nil {
		return nil, err
	}
	if c.authors == nil {
		c.authors = attribution.NewJoiner(attribution.Config{
			Controller: controllerName, MaxWait: config.AttributionMaxWait, Facts: config.Facts, Wanted: c.watched.Has,
		})
	}
	c.reach = newReach(config.Namespace, func(namespace string) bool {
		_, exists := shared.Namespaces.Get(namespace)
		return exists
	}, c.builder)
	objects := watch.Objects(shared.Cluster.Dynamic)
	c.reader = &reader{client: shared.Cluster.Dynamic, lister: watch.NewLister(objects), types: shared.Types.Snapshot}
	c.events = newEvents(shared.Events, func() bool { return c.policy().Suspend.CatalogNotices })
	c.keeper = &keeper{
		api: shared.Client.ConfigbutlerV1alpha1(), records: shared.Records, unseen: c.unseen, clock: shared.Clock,
		revisions: revisions.New(shared.Store),
		source:    c.reach.of, trouble: c.trouble, taken: c.interests.taken, events: c.events,
		naming: newNaming(config.CommitIndex, shared.Store, shared.Clock), author: c.authors.FindSince,
	}
	c.streams = watch.NewStreams(controllerName, objects, (*watchHandler)(c))
	return c, c.listen()
}

// run follows the sources until ctx is done.
func (c *catalogs) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var group wait.Group
	defer group.Wait()
	defer cancel()
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
	group.StartWithContext(ctx, func(ctx context.Context) { c.queue.Run(ctx, workers, c.reconcile) })
	c.watchUntil(ctx)
	return nil
}
