// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// measurePeriod is the interval at which gauges are updated. It is shorter than usual scrape intervals.
const measurePeriod = 5 * time.Second

// gauges updates the gauges of environments.
type gauges struct {
	api    typed.SyncPoliciesGetter
	caches *caches
	index  *index.Index
	starts *startQueue
	clock  clock.WithTicker
}

// run updates the gauges and status.syncsWaiting of the SyncPolicy until ctx ends. Then it sets the gauges to 0: the next leader
// reports them.
func (g *gauges) run(ctx context.Context) {
	defer setGauges(numbers{})
	ticker := g.clock.NewTicker(measurePeriod)
	defer ticker.Stop()
	for {
		counted := g.count()
		setGauges(counted)
		g.reportWaiting(ctx, counted.waiting)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// numbers are the values of the gauges.
type numbers struct {
	ready                                map[metav1.ConditionStatus]int
	waiting, active, awaiting, conflicts int
	copies                               int
	catalog, dependencies                prompts
}

// count computes the values of the gauges.
func (g *gauges) count() numbers {
	out := numbers{ready: map[metav1.ConditionStatus]int{}}
	out.waiting, out.active = g.starts.numbers()
	out.copies = g.index.Len()
	for _, e := range g.caches.environments() {
		status := metav1.ConditionUnknown
		if ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			status = ready.Status
		}
		out.ready[status]++
		out.countOpen(g.caches.openOf(e))
		out.catalog.add(e, v1alpha1.ConditionCatalogUpToDate, e.Status.ChangedWorkloadCount > 0)
		out.dependencies.add(e, v1alpha1.ConditionDependenciesUpToDate,
			e.Status.LatestDependencySync != "" || len(e.Status.ChangedDependencies) > 0)
	}
	return out
}

// reportWaiting writes how many syncs wait to the status of the SyncPolicy, if there is one. Failures are retried with the next update.
func (g *gauges) reportWaiting(ctx context.Context, waiting int) {
	known, err := g.caches.informers.SyncPolicies().Lister().Get(v1alpha1.SyncPolicyName)
	if err != nil || known.Status.SyncsWaiting == int64(waiting) {
		return
	}
	policy := known.DeepCopy()
	policy.Status.SyncsWaiting = int64(waiting)
	_, err = g.api.SyncPolicies().UpdateStatus(ctx, policy, metav1.UpdateOptions{})
	if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, "Failed to report the number of waiting syncs in the SyncPolicy")
	}
}

func (n *numbers) countOpen(records []*v1alpha1.SyncStatus) {
	for _, record := range records {
		switch record.Status.State {
		case v1alpha1.SyncStateManualIntervention:
			n.awaiting++
		case v1alpha1.SyncStateConflicted:
			n.conflicts++
		}
	}
}

// prompts counts the environments with changes that users can sync.
type prompts struct {
	count int
	// oldest is the earliest time since when one of them has changes.
	oldest time.Time
}

// add counts an environment with changes, unless they are dismissed or the environment is pinned.
func (p *prompts) add(e *v1alpha1.Environment, condition string, has bool) {
	found := meta.FindStatusCondition(e.Status.Conditions, condition)
	if !has || found == nil || found.Status != metav1.ConditionFalse ||
		found.Reason == v1alpha1.ReasonDismissed || found.Reason == v1alpha1.ReasonPinned {
		return
	}
	p.count++
	if since := found.LastTransitionTime.Time; p.oldest.IsZero() || since.Before(p.oldest) {
		p.oldest = since
	}
}

func (p *prompts) show(about string) {
	promptsGauge.WithLabelValues(about).Set(float64(p.count))
	since := 0.0
	if p.count > 0 {
		since = float64(p.oldest.Unix())
	}
	oldestPrompt.WithLabelValues(about).Set(since)
}

func setGauges(to numbers) {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
		environmentsGauge.WithLabelValues(string(status)).Set(float64(to.ready[status]))
	}
	to.catalog.show(aboutCatalog)
	to.dependencies.show(aboutDependencies)
	indexCopies.Set(float64(to.copies))
	waitingGauge.Set(float64(to.waiting))
	activeGauge.Set(float64(to.active))
	awaitingGauge.WithLabelValues(string(v1alpha1.SyncStateManualIntervention)).Set(float64(to.awaiting))
	awaitingGauge.WithLabelValues(string(v1alpha1.SyncStateConflicted)).Set(float64(to.conflicts))
}
