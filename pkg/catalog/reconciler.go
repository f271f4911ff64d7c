// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/catalog/revisions"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// workers is the number of source namespaces that are reconciled at the same time.
const workers = 4

// reconciler reconciles source namespaces for one leader term.
type reconciler struct {
	config  Config
	shared  *controller.Shared
	lister  *lister
	watches *watches
	authors Authors
	// intake collects the changes of source namespaces in batches.
	intake *pending.Intake
	filter *eventFilter
	// sources has the health of the watches of source namespaces.
	sources *reachability
	reader  *reader
	updater *updater
	events  *events
	// written are the records that the cache does not have yet.
	written *mutationCache
	garbage *garbageCollector
	// permissionLost has why a catalog is not updated: its editor is no longer allowed to read what it shows.
	permissionLost reasons
	// queue has the source namespaces to reconcile.
	queue *controller.Queue[string]
}

// newReconciler returns a reconciler that does nothing until run.
func newReconciler(ctx context.Context, config Config, shared *controller.Shared) (*reconciler, error) {
	r := &reconciler{
		config: config, shared: shared, lister: &lister{shared.Informers},
		filter: newEventFilter(), written: newMutationCache(), authors: config.Authors,
		queue: controller.NewQueue[string](controllerName, shared.Clock),
	}
	shared.Cleanup(r.queue.ShutDown)
	var err error
	intake := pending.Config{Clock: shared.Clock, Capacity: config.Capacity, Metrics: intakeMetrics}
	if r.intake, err = pending.Open(ctx, shared.Store.Table(pending.TableName), intake); err != nil {
		return nil, err
	}
	objects := watch.Objects(shared.Cluster.Dynamic)
	r.watches = newWatches(r.lister, shared.Types, watch.NewStreams(controllerName, objects, (*watchHandler)(r)))
	if r.authors == nil {
		r.authors = attribution.NewJoiner(attribution.Config{
			Controller: controllerName, MaxWait: config.AttributionMaxWait, Facts: config.Facts, Wanted: r.watches.current.Has,
		})
	}
	r.sources = newReachability(config.Namespace, func(namespace string) bool {
		_, exists := shared.Namespaces.Get(namespace)
		return exists
	}, r.lister.builder)
	r.reader = &reader{client: shared.Cluster.Dynamic, lister: watch.NewLister(objects), types: shared.Types.Snapshot}
	r.events = newEvents(shared.Events, func() bool { return r.lister.policy().Suspend.CatalogNotices })
	api, stored := shared.Client.ConfigbutlerV1alpha1(), revisions.New(shared.Store)
	r.garbage = &garbageCollector{api: api, revisions: stored}
	r.updater = &updater{
		api: api, records: shared.Records, written: r.written, clock: shared.Clock, revisions: stored,
		source: r.sources.of, failure: r.failureOf, observed: r.filter.observed, events: r.events,
		namer: newCommitNamer(config.History, shared.Store, shared.Clock), authors: r.authors,
		auditWait: func() time.Duration {
			return r.lister.batchWindow() + attribution.LongestAuditWait(config.AttributionMaxWait)
		},
	}
	r.watches.sources, r.watches.namer = r.sources, r.updater.namer
	return r, r.addHandlers()
}

// run reconciles source namespaces until ctx is done.
func (r *reconciler) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var group wait.Group
	defer group.Wait()
	defer cancel()
	if err := r.garbage.collectOrphans(ctx); err != nil {
		return err
	}
	if err := r.seed(ctx); err != nil {
		return err
	}
	r.watches.current.Set(r.watches.desired())
	r.authors.Start(ctx, &group)
	group.StartWithContext(ctx, func(ctx context.Context) { r.intake.Run(ctx, r.intakeNotices(ctx)) })
	group.StartWithContext(ctx, func(ctx context.Context) { r.updater.namer.run(ctx, r.queue.Add) })
	group.StartWithContext(ctx, r.watches.streams.Run)
	group.StartWithContext(ctx, (&gauges{lister: r.lister, sources: r.sources, clock: r.shared.Clock}).run)
	group.StartWithContext(ctx, func(ctx context.Context) { r.queue.Run(ctx, workers, r.reconcile) })
	r.watches.run(ctx)
	return nil
}
