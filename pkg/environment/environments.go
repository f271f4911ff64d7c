// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
)

// workers is the number of environments that are reconciled at the same time.
const workers = 4

// environments reconciles environments for one leader term.
type environments struct {
	config    Config
	shared    *controller.Shared
	api       typed.ConfigbutlerV1alpha1Interface
	informers externalversions.SharedInformerFactory
	copies    *copies.Copies
	executor  Executor
	// starts limits and orders the starts of syncs. runs are the syncs in progress.
	starts *startQueue
	runs   *runs
	// offers computes what syncs would change.
	offers    *offers
	events    *events
	rights    syncer.AccessReviewer
	remover   Remover
	readiness Readiness
	detector  Detector
	// sources counts the source changes that the detector has found.
	sources *sourceChanges
	// queue has the environments to reconcile.
	queue *controller.Queue[types.NamespacedName]
}

// newEnvironments returns environments that do nothing until run.
func newEnvironments(config Config, shared *controller.Shared, parts parts) (*environments, error) {
	c := &environments{
		config: config, shared: shared, api: shared.Client.ConfigbutlerV1alpha1(), copies: copies.New(shared.Store, keptRevisions),
		informers: shared.Informers, queue: controller.NewQueue[types.NamespacedName](controllerName, shared.Clock),
	}
	shared.Cleanup(c.queue.ShutDown)
	c.events, c.rights, c.remover = newEvents(shared.Events), config.Runner.StateReader.Rights, parts.remover
	policy := func() v1alpha1.SyncPolicySpec { return *c.settings() }
	c.sources = newSourceChanges()
	c.detector = parts.detector(following{policy: policy, sources: c.bySourceNamespace, changed: c.sourceChanged})
	c.starts = newStartQueue(shared.Clock)
	c.runs = newRuns()
	c.offers = newOffers(config.Runner, shared.Clock, c.queue.Add)
	shared.Cleanup(c.offers.queue.ShutDown)
	c.executor = &syncer.Executor{
		Runner: config.Runner, Records: shared.Records, SyncStatuses: c.api, Catalogs: c.api,
		Clock: shared.Clock, Policy: policy,
	}
	var err error
	if c.readiness, err = parts.readiness(c.queue.Add); err != nil {
		return nil, err
	}
	return c, c.listen()
}

// run reconciles environments until ctx is done, and waits for the syncs that are running.
func (c *environments) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var group wait.Group
	defer c.runs.wait()
	defer group.Wait()
	defer cancel()
	if err := c.copies.Sweep(ctx, c.isThere); err != nil {
		return err
	}
	if _, err := c.readIndex(ctx); err != nil {
		return err
	}
	group.StartWithContext(ctx, func(ctx context.Context) { c.queue.Run(ctx, workers, c.reconcile) })
	for _, part := range []func(context.Context){c.offers.run, c.readiness.Run, c.compareUntil, c.measureUntil} {
		group.StartWithContext(ctx, part)
	}
	return c.detector.Run(ctx)
}
