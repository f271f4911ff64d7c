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

// planners is how many environments are planned for at once. Plans wait behind each other, and never behind runs.
const planners = 2

// unwatchedPeriod is how often an environment is planned anew because of objects that are not watched: what the target lacks, while it
// lacks something, and the custom resources in spec.include.
const unwatchedPeriod = 5 * time.Minute

// offer is what a sync of everything would bring now, as the subresource diff shows it: of the newest revision, or of the one that
// the environment is pinned to.
type offer struct {
	basis
	workloads []v1alpha1.WorkloadChange
	// others are how many other objects would be changed.
	others []v1alpha1.DependencyCount
	// changes says that something would be changed, be it no workload.
	changes bool
	// news is plan.Plan.News.
	news      string
	conflicts []v1alpha1.WorkloadConflict
	// notCopied are what the target lacks and a sync does not bring.
	notCopied []v1alpha1.NotCopiedObject
	// failure is why that is not known.
	failure error
	// stale says that the source has changed since.
	stale bool
}

// isKnown says whether it is known what a sync would bring now.
func (o *offer) isKnown() bool { return o != nil && o.failure == nil && !o.stale }

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
	// source is how many changes of the source have been told of.
	source int
}

// Planner makes plans, as syncer.Syncer does in the mode Plan.
type Planner interface {
	Run(ctx context.Context, request syncer.Request) (syncer.Result, error)
}

var _ Planner = &syncer.Syncer{}

// offers finds out what syncs would bring to environments, beside whoever asks.
type offers struct {
	planner Planner
	clock   clock.WithTicker
	// known is told that something else is known of an environment.
	known func(types.NamespacedName)
	queue *controller.Queue[types.NamespacedName]

	mu     sync.Mutex
	asked  map[types.NamespacedName]question
	answer map[types.NamespacedName]*offer
}

// question is what is asked of a planner.
type question struct {
	basis
	request syncer.Request
}

func newOffers(planner Planner, clock clock.WithTicker, known func(types.NamespacedName)) *offers {
	return &offers{
		planner: planner, clock: clock, known: known, asked: map[types.NamespacedName]question{}, answer: map[types.NamespacedName]*offer{},
		queue: controller.NewQueue[types.NamespacedName](controllerName+"-plans", clock),
	}
}

// of returns the offer of a basis. If it is not known yet, it is being found out: then it returns what was offered before the source
// changed, which is stale, or nil.
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
	return o.stale(name, q.basis)
}

// stale returns the last offer, if nothing has changed since but the source.
func (o *offers) stale(name types.NamespacedName, now basis) *offer {
	last := o.answer[name]
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

// forget lets go of an environment that is gone.
func (o *offers) forget(name types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.asked, name)
	delete(o.answer, name)
}

// run computes offers until ctx is done.
func (o *offers) run(ctx context.Context) { o.queue.Run(ctx, planners, o.find) }

// find computes the offer of an environment. again is when it has to be computed once more even if nothing has changed.
func (o *offers) find(ctx context.Context, name types.NamespacedName) (again time.Time, failure error) {
	o.mu.Lock()
	q, ok := o.asked[name]
	o.mu.Unlock()
	if !ok {
		return again, nil
	}
	found := &offer{basis: q.basis}
	result, err := o.planner.Run(ctx, q.request)
	switch {
	case err != nil && ctx.Err() != nil:
		return again, err
	case err != nil:
		found.failure = err
	default:
		found.workloads, found.others = plan.Prompt(result.Plan.Changes(plan.HideSecrets))
		found.conflicts = result.Plan.Conflicts
		found.changes, found.news = len(result.Plan.Summaries()) > 0, result.Plan.OtherChangesHash
		found.notCopied = result.Plan.NotCopied
		if len(found.notCopied) > 0 || includesCustom(q.request.Environment) {
			again = o.clock.Now().Add(unwatchedPeriod)
		}
	}
	if o.take(name, found) {
		o.known(name)
	}
	if err != nil {
		return again, fmt.Errorf("compute what a sync would change: %w", err)
	}
	return again, nil
}

// includesCustom says whether an environment names custom resources.
func includesCustom(e *v1alpha1.Environment) bool {
	return slices.ContainsFunc(e.Spec.Include, func(object v1alpha1.IncludedObject) bool {
		return plan.IsOnlyIncluded(plan.KeyOfIncluded(object).GroupKind)
	})
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

// question asks what a sync of everything would bring after so many runs and changes of the source, to a target that is there or
// not. It is what the subresource diff asks.
func (s *situation) question(runs, source int, target bool) question {
	e := s.environment
	q := question{
		basis: basis{
			catalog: s.catalog.UID, revision: s.offered(), generation: e.Generation, applied: e.Status.AppliedRevision, runs: runs, target: target,
			withheld: s.notCopied.String(), source: source,
		},
		request: syncer.PreviewRequest(e.DeepCopy(), v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionAll}),
	}
	q.request.Mode = syncer.ModePlan
	q.request.Resolution = s.resolution()
	for _, request := range e.Status.PendingRequests {
		if request.Type == v1alpha1.EnvironmentRequestResolve {
			q.decisions++
		}
	}
	return q
}
