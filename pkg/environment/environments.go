// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// workers is the number of environments that are reconciled at the same time.
const workers = 4

// environments reconciles environments for one leader term.
type environments struct {
	api     typed.ConfigbutlerV1alpha1Interface
	caches  *caches
	reader  *reader
	records controller.Records
	copies  *copies.Copies
	runner  *syncer.Syncer
	starter *starter
	// offers computes what syncs would change.
	offers    *offers
	events    *events
	rights    access.Reviewer
	remover   Remover
	readiness Readiness
	detector  Detector
	// sources counts the source changes that the detector has found.
	sources *sourceChanges
	index   *indexUpdater
	gauges  *gauges
	// queue has the environments to reconcile.
	queue *controller.Queue[types.NamespacedName]
}

// newEnvironments returns environments that do nothing until run.
func newEnvironments(config Config, shared *controller.Shared, parts parts) (*environments, error) {
	api, runner, starts, runs := shared.Client.ConfigbutlerV1alpha1(), config.Runner, newStartQueue(shared.Clock), newRuns()
	caches := &caches{informers: shared.Informers.Configbutler().V1alpha1(), namespaces: shared.Namespaces}
	c := &environments{
		api: api, caches: caches, records: shared.Records, copies: copies.New(shared.Store, keptRevisions), runner: runner,
		events: newEvents(shared.Events), rights: runner.StateReader.Rights, remover: parts.remover, sources: newSourceChanges(),
		queue: controller.NewQueue[types.NamespacedName](controllerName, shared.Clock),
		reader: &reader{
			api: api, caches: caches, obstacles: &obstacles{config.Namespace, caches}, runs: runs, clock: shared.Clock,
		},
		index:  &indexUpdater{api: api, index: runner.Index, clock: shared.Clock},
		gauges: &gauges{api: api, caches: caches, index: runner.Index, starts: starts, clock: shared.Clock},
	}
	shared.Cleanup(c.queue.ShutDown)
	c.offers = newOffers(runner, shared.Clock, c.queue.Add)
	shared.Cleanup(c.offers.queue.ShutDown)
	policy := func() v1alpha1.SyncPolicySpec { return *caches.policy() }
	c.detector = parts.detector(following{policy: policy, sources: caches.bySourceNamespace, changed: c.sourceChanged})
	c.starter = &starter{
		executor: &syncer.Executor{
			Runner: runner, Records: shared.Records, SyncStatuses: api, Catalogs: api, Clock: shared.Clock, Policy: policy,
		},
		clock: shared.Clock, starts: starts, runs: runs, queue: c.queue,
	}
	var err error
	if c.readiness, err = parts.readiness(c.queue.Add); err != nil {
		return nil, err
	}
	f := &follower{caches: caches, queue: c.queue, detector: c.detector, forget: c.events.conditions.Forget}
	return c, f.listen()
}

// run reconciles environments until ctx is done, and waits for the syncs that are running.
func (c *environments) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var group wait.Group
	defer c.starter.runs.wait()
	defer group.Wait()
	defer cancel()
	if err := c.copies.Sweep(ctx, c.reader.isThere); err != nil {
		return err
	}
	if _, err := c.index.rebuild(ctx); err != nil {
		return err
	}
	group.StartWithContext(ctx, func(ctx context.Context) { c.queue.Run(ctx, workers, c.reconcile) })
	for _, part := range []func(context.Context){c.offers.run, c.readiness.Run, c.index.run, c.gauges.run} {
		group.StartWithContext(ctx, part)
	}
	return c.detector.Run(ctx)
}
