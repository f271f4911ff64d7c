// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"time"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

const (
	// workers is how many environments are looked at at once.
	workers = 4
	// What fails is tried again after retryMin, doubling up to retryMax.
	retryMin = 500 * time.Millisecond
	retryMax = time.Minute
)

// environments looks after environments for one term of leadership.
type environments struct {
	config     Config
	api        typed.ConfigbutlerV1alpha1Interface
	informers  externalversions.SharedInformerFactory
	namespaces *watch.Namespaces
	copies     *copies.Copies
	jobs       Jobs
	// line has the runs begin in order, runs are those that go on.
	line *line
	runs *runs
	// offers are what catalogs would bring.
	offers    *offers
	events    *events
	rights    syncer.AccessReviewer
	remover   Remover
	readiness Readiness
	detector  Detector
	// sources are the changes that the detector has told of.
	sources *sourceChanges
	// queue has the environments that are to be looked at.
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
}

// tend looks after environments until ctx ends.
func tend(ctx context.Context, config Config, edge edge) error {
	c, err := newEnvironments(config, edge)
	if err != nil {
		c.close()
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var group wait.Group
	defer c.runs.wait()
	defer group.Wait()
	defer c.close()
	defer c.informers.Shutdown()
	defer cancel()
	c.informers.StartWithContext(ctx)
	group.StartWithContext(ctx, c.namespaces.Run)
	if err := c.prepare(ctx); err != nil {
		return err
	}
	for range workers {
		group.StartWithContext(ctx, c.work)
	}
	for range planners {
		group.StartWithContext(ctx, c.offers.work)
	}
	for _, part := range []func(context.Context){c.readiness.Run, c.compareUntil, c.measureUntil} {
		group.StartWithContext(ctx, part)
	}
	return c.detector.Run(ctx)
}

// close ends the queues, and with them whoever works on them.
func (c *environments) close() {
	c.queue.ShutDown()
	c.offers.close()
}

// newEnvironments returns what does nothing yet, and is to be closed also after an error.
func newEnvironments(config Config, edge edge) (*environments, error) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryMin, retryMax)
	c := &environments{
		config: config, api: config.Slipstream.ConfigbutlerV1alpha1(), copies: copies.New(config.Store, keptRevisions),
		informers: externalversions.NewSharedInformerFactory(config.Slipstream, 0),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Clock: config.Clock}),
	}
	c.events, c.rights, c.remover = newEvents(edge.events), config.Runner.StateReader.Rights, edge.remover
	policy := func() v1alpha1.SyncPolicySpec { return *c.settings() }
	c.sources = newSourceChanges()
	c.detector = edge.detect(following{policy: policy, sources: c.bySourceNamespace, changed: c.sourceChanged})
	c.line = newLine(config.Clock)
	c.runs = newRuns()
	c.offers = newOffers(config.Runner, config.Clock, c.queue.Add)
	c.jobs = &syncer.Executor{
		Runner: config.Runner, Records: config.Records, SyncStatuses: c.api, Catalogs: c.api,
		Clock: config.Clock, Policy: policy,
	}
	var err error
	if c.namespaces, err = watch.NewNamespaces(edge.metadata); err != nil {
		return c, err
	}
	if c.readiness, err = edge.watch(c.queue.Add); err != nil {
		return c, err
	}
	return c, c.listen()
}

// prepare waits until everything is known that nothing may be concluded without, and puts in order what a death has left.
func (c *environments) prepare(ctx context.Context) error {
	for kind, synced := range c.informers.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("read the %s: %w", kind, context.Cause(ctx))
		}
	}
	if !c.namespaces.WaitForSync(ctx) {
		return fmt.Errorf("read the namespaces: %w", context.Cause(ctx))
	}
	if err := c.copies.Sweep(ctx, c.isThere); err != nil {
		return err
	}
	_, err := c.readIndex(ctx)
	return err
}
