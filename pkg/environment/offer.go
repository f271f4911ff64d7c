// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// planners is the number of workers that plan. Planning never waits for syncs. A plan waits for kube-apiserver for half of its time, so this
// many keep two processors busy.
const planners = 4

// unwatchedPeriod is the interval at which an environment is planned again if it depends on objects that are not watched: objects that
// the target lacks, and custom resources in spec.include.
const unwatchedPeriod = 5 * time.Minute

// offer is what a full sync would change now, as the subresource diff shows it, with the newest or the pinned revision.
type offer struct {
	basis
	workloads []v1alpha1.WorkloadChange
	// others counts the other objects that would change, by type.
	others []v1alpha1.DependencyCount
	// changes is set if any object would change.
	changes bool
	// othersHash is plan.Plan.OtherChangesHash.
	othersHash string
	conflicts  []v1alpha1.WorkloadConflict
	// notCopied are objects that the target lacks and a sync does not copy.
	notCopied []v1alpha1.NotCopiedObject
	// failure is why planning failed.
	failure error
	// stale is set if the source has changed since.
	stale bool
}

// isKnown reports whether the offer is up to date.
func (o *offer) isKnown() bool { return o != nil && o.failure == nil && !o.stale }

// basis is the input of an offer. An offer is valid for its basis only.
type basis struct {
	// environment distinguishes an environment from a deleted one of the same name.
	environment types.UID
	catalog     types.UID
	revision    int64
	generation  int64
	applied     int64
	// decisions counts decisions about conflicts, and runs counts ended syncs.
	decisions, runs int
	// target is set if the target namespace exists, and there counts the workloads of the environment in it: deleted workloads are
	// offered again.
	target bool
	there  int32
	// withheld are the types that are not copied from the source.
	withheld string
	// source counts changes of the source.
	source int
}

// Planner makes plans, as syncer.Syncer does in the mode Plan.
type Planner interface {
	Run(ctx context.Context, request syncer.Request) (syncer.Result, error)
	// Moment is what Request.Since is compared with.
	Moment() syncer.Moment
}

var _ Planner = &syncer.Syncer{}

// offers computes the offers of environments in the background.
type offers struct {
	planner Planner
	clock   clock.WithTicker
	// known is called when the offer of an environment has changed.
	known func(types.NamespacedName)
	queue *controller.Queue[types.NamespacedName]

	mu sync.Mutex
	// requests are the latest requests, and computed the latest results.
	requests map[types.NamespacedName]offerRequest
	computed map[types.NamespacedName]*offer
}

// offerRequest is a request to compute an offer.
type offerRequest struct {
	basis
	sync syncer.Request
}

func newOffers(planner Planner, clock clock.WithTicker, known func(types.NamespacedName)) *offers {
	return &offers{
		planner: planner, clock: clock, known: known,
		requests: map[types.NamespacedName]offerRequest{}, computed: map[types.NamespacedName]*offer{},
		queue: controller.NewQueue[types.NamespacedName](controllerName+"-plans", clock),
	}
}

// of returns the offer for a basis. If it is not computed yet, of enqueues that, and returns the previous offer as stale if only the
// source has changed since, nil otherwise.
func (o *offers) of(name types.NamespacedName, request offerRequest) *offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known := o.computed[name]; known != nil && known.basis == request.basis {
		return known
	}
	if before, ok := o.requests[name]; !ok || before.basis != request.basis {
		// What has changed the basis has happened, so environments of one catalog can have its source read once.
		request.sync.Since = o.planner.Moment()
		o.requests[name] = request
		o.queue.Add(name)
	}
	return o.stale(name, request.basis)
}

// stale returns the previous offer if only the source has changed since.
func (o *offers) stale(name types.NamespacedName, now basis) *offer {
	last := o.computed[name]
	if last == nil || last.failure != nil {
		return nil
	}
	before := last.basis
	if before.source = now.source; before != now {
		return nil
	}
	offer := *last
	offer.stale = true
	return &offer
}

// forget drops the offer of a deleted environment.
func (o *offers) forget(name types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.requests, name)
	delete(o.computed, name)
}

// run computes offers until ctx is done.
func (o *offers) run(ctx context.Context) { o.queue.Run(ctx, planners, o.find) }

// find computes the offer of an environment. again is when to compute it again even if nothing has changed.
func (o *offers) find(ctx context.Context, name types.NamespacedName) (again time.Time, failure error) {
	request, ok := o.take(name)
	if !ok {
		return again, nil
	}
	found := &offer{basis: request.basis}
	result, err := o.planner.Run(ctx, request.sync)
	switch {
	case err != nil && ctx.Err() != nil:
		return again, err
	case err != nil:
		found.failure = err
	default:
		found.workloads, found.others = plan.Prompt(result.Plan.Changes(plan.HideSecrets))
		found.conflicts = result.Plan.Conflicts
		found.changes, found.othersHash = len(result.Plan.Summaries()) > 0, result.Plan.OtherChangesHash
		found.notCopied = result.Plan.NotCopied
		if len(found.notCopied) > 0 || includesCustom(request.sync.Environment) {
			again = o.clock.Now().Add(unwatchedPeriod)
		}
	}
	if o.store(name, found) {
		o.known(name)
	}
	if err != nil {
		return again, fmt.Errorf("compute what a sync would change: %w", err)
	}
	return again, nil
}

// take returns the latest request for an environment. If it is taken again, without a change of its basis, everything is read anew.
func (o *offers) take(name types.NamespacedName) (request offerRequest, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if request, ok = o.requests[name]; ok {
		again := request
		again.sync.Since = 0
		o.requests[name] = again
	}
	return request, ok
}

// includesCustom reports whether an environment includes custom resources.
func includesCustom(e *v1alpha1.Environment) bool {
	return slices.ContainsFunc(e.Spec.Include, func(object v1alpha1.IncludedObject) bool {
		return plan.IsOnlyIncluded(plan.KeyOfIncluded(object).GroupKind)
	})
}

// store stores an offer, and reports whether it differs from the previous one.
func (o *offers) store(name types.NamespacedName, found *offer) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.computed[name]
	o.computed[name] = found
	return before == nil || before.basis != found.basis || before.failure == nil || found.failure == nil ||
		before.failure.Error() != found.failure.Error()
}

// newOfferRequest returns the request for the offer, the same plan that the subresource diff shows. The caller completes its basis with
// what the environment and the catalog do not have.
func newOfferRequest(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog, withheld plan.Denied) offerRequest {
	of := offerRequest{
		basis: basis{
			environment: e.UID, catalog: catalog.UID, revision: newestRevision(catalog), generation: e.Generation,
			applied: e.Status.AppliedRevision, withheld: withheld.String(),
		},
		sync: syncer.PreviewRequest(e.DeepCopy(), v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionAll}),
	}
	of.sync.Mode = syncer.ModePlan
	of.sync.Resolution = requests(e.Status.PendingRequests).resolution()
	for _, request := range e.Status.PendingRequests {
		if request.Type == v1alpha1.EnvironmentRequestResolve {
			of.decisions++
		}
	}
	return of
}
