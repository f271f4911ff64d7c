// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// measurePeriod is how old the gauges are at most. It is shorter than what metrics are usually read in.
const measurePeriod = 5 * time.Second

// measureUntil keeps the gauges, and what the SyncPolicy says of the line, until ctx ends. Afterwards the gauges are 0: whoever
// leads next tells.
func (c *environments) measureUntil(ctx context.Context) {
	defer setGauges(numbers{})
	ticker := c.shared.Clock.NewTicker(measurePeriod)
	defer ticker.Stop()
	for {
		counted := c.count()
		setGauges(counted)
		c.tellWaiting(ctx, counted.waiting)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// numbers are what the gauges show.
type numbers struct {
	ready                                map[metav1.ConditionStatus]int
	waiting, active, awaiting, conflicts int
	copies                               int
	catalog, dependencies                prompts
}

// count counts what there is.
func (c *environments) count() numbers {
	out := numbers{ready: map[metav1.ConditionStatus]int{}}
	out.waiting, out.active = c.line.numbers()
	out.copies = c.config.Runner.Index.Len()
	api := c.informers.Configbutler().V1alpha1()
	for _, e := range as[*v1alpha1.Environment](api.Environments().Informer().GetStore().List()) {
		status := metav1.ConditionUnknown
		if ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			status = ready.Status
		}
		out.ready[status]++
		out.countOpen(c.openOf(e))
		out.catalog.add(e, v1alpha1.ConditionCatalogUpToDate, e.Status.ChangedWorkloadCount > 0)
		out.dependencies.add(e, v1alpha1.ConditionDependenciesUpToDate, e.Status.LatestDependencySync != "" || len(e.Status.ChangedDependencies) > 0)
	}
	return out
}

// openOf are the records of an environment that have not come to their end, as the cache has them.
func (c *environments) openOf(e *v1alpha1.Environment) []*v1alpha1.SyncStatus {
	// The index is there since before the informer was started.
	open, _ := c.recordInformer().GetIndexer().ByIndex(bySubject, string(e.UID))
	return as[*v1alpha1.SyncStatus](open)
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

// prompts are the environments that have something to take.
type prompts struct {
	count int
	// oldest is since when the first of them has.
	oldest time.Time
}

// add counts an environment, if it has something to take and its condition does not say that this was put aside.
func (p *prompts) add(e *v1alpha1.Environment, condition string, has bool) {
	told := meta.FindStatusCondition(e.Status.Conditions, condition)
	if !has || told == nil || told.Status != metav1.ConditionFalse ||
		told.Reason == v1alpha1.ReasonDismissed || told.Reason == v1alpha1.ReasonPinned {
		return
	}
	p.count++
	if since := told.LastTransitionTime.Time; p.oldest.IsZero() || since.Before(p.oldest) {
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
