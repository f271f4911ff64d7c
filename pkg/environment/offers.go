// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/gather"
	"github.com/configbutler/slipstream/pkg/environment/run"
)

// planners is how many environments are planned for at once. Plans wait behind each other, and never behind runs.
const planners = 2

// offer is what the action Catalog would bring of the newest revision, also to an environment that is pinned.
type offer struct {
	basis
	workloads []v1alpha1.WorkloadChange
	// changes says that something would be changed, be it no workload.
	changes   bool
	conflicts []v1alpha1.WorkloadConflict
	// failure is why that is not known.
	failure error
}

// basis is what an offer depends on. Of another basis there is another offer.
type basis struct {
	catalog    types.UID
	revision   int64
	generation int64
	applied    int64
	// decisions is how many have been made about conflicts, runs how many runs have come to an end.
	decisions, runs int
	// target says that there is the target, and there how many of the environment's workloads are in it: what somebody deletes is
	// offered again.
	target bool
	there  int32
	// withheld are the types that are not copied from the source.
	withheld string
}

// Planner makes plans, as run.Runner does in the mode Plan.
type Planner interface {
	Run(ctx context.Context, request run.Request) (run.Result, error)
}

var _ Planner = &run.Runner{}

// offers finds out what catalogs would bring to environments, beside whoever asks.
type offers struct {
	planner Planner
	// known is told that something else is known of an environment.
	known func(types.NamespacedName)
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu     sync.Mutex
	asked  map[types.NamespacedName]question
	answer map[types.NamespacedName]*offer
}

// question is what is asked of a planner.
type question struct {
	basis
	request run.Request
}

func newOffers(planner Planner, clock clock.WithTicker, known func(types.NamespacedName)) *offers {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryMin, retryMax)
	return &offers{
		planner: planner, known: known, asked: map[types.NamespacedName]question{}, answer: map[types.NamespacedName]*offer{},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Clock: clock}),
	}
}

// of returns the offer of a basis, nil if it is not known yet: then it is being found out.
func (o *offers) of(name types.NamespacedName, q question) *offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known := o.answer[name]; known != nil && known.basis == q.basis {
		return known
	}
	if before, ok := o.asked[name]; !ok || before.basis != q.basis {
		o.asked[name] = q
		o.queue.Add(name)
	}
	return nil
}

// forget lets go of an environment that is gone.
func (o *offers) forget(name types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.asked, name)
	delete(o.answer, name)
}

func (o *offers) close() { o.queue.ShutDown() }

// work answers questions, one after the other, until it is closed.
func (o *offers) work(ctx context.Context) {
	for {
		name, shutdown := o.queue.Get()
		if shutdown {
			return
		}
		o.find(ctx, name)
		o.queue.Done(name)
	}
}

// find answers the question about an environment. What could not be found out is asked again after a while.
func (o *offers) find(ctx context.Context, name types.NamespacedName) {
	o.mu.Lock()
	q, ok := o.asked[name]
	o.mu.Unlock()
	if !ok {
		return
	}
	found := &offer{basis: q.basis}
	result, err := o.planner.Run(ctx, q.request)
	switch {
	case err != nil && ctx.Err() != nil:
		return
	case err != nil:
		klog.FromContext(ctx).V(2).Info("What a catalog would bring cannot be found out, trying again", "environment", name, "err", err)
		found.failure = err
		o.queue.AddRateLimited(name)
	default:
		found.workloads, found.conflicts = result.Plan.Workloads(), result.Plan.Conflicts
		found.changes = len(result.Plan.Summaries()) > 0
		o.queue.Forget(name)
	}
	if o.take(name, found) {
		o.known(name)
	}
}

// take keeps an offer, and says whether it is another than before.
func (o *offers) take(name types.NamespacedName, found *offer) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.answer[name]
	o.answer[name] = found
	return before == nil || before.basis != found.basis || before.failure == nil || found.failure == nil ||
		before.failure.Error() != found.failure.Error()
}

// question asks what the catalog would bring after so many runs, to a target that is there or not.
func (s *situation) question(runs int, target bool) question {
	e := s.environment
	q := question{
		basis: basis{
			catalog: s.catalog.UID, revision: s.offered(), generation: e.Generation, applied: e.Status.AppliedRevision, runs: runs, target: target,
			withheld: s.notCopied.String(),
		},
		request: run.Request{Mode: run.Plan, Request: gather.Request{
			Environment: e.DeepCopy(), Action: v1alpha1.SyncActionCatalog, Resolution: s.resolution(),
		}},
	}
	for _, request := range e.Status.PendingRequests {
		if request.Type == v1alpha1.EnvironmentRequestResolve {
			q.decisions++
		}
	}
	return q
}
