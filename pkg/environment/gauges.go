// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/job"
)

// measurePeriod is how old the gauges are at most. It is shorter than what metrics are usually read in.
const measurePeriod = 5 * time.Second

// measure counts what came of a run.
func measure(outcome job.Outcome, took time.Duration) {
	for _, record := range outcome.Records {
		syncs.WithLabelValues(string(record.Spec.Type), string(record.Status.State)).Inc()
	}
	if outcome.Result.Plan != nil {
		syncSeconds.Observe(took.Seconds())
	}
}

// measureUntil keeps the gauges, and what the SyncPolicy says of the line, until ctx ends. Afterwards the gauges are 0: whoever
// leads next tells.
func (c *environments) measureUntil(ctx context.Context) {
	defer setGauges(numbers{})
	ticker := c.config.Clock.NewTicker(measurePeriod)
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
}

// count counts what there is.
func (c *environments) count() numbers {
	out := numbers{ready: map[metav1.ConditionStatus]int{}}
	out.waiting, out.active = c.line.numbers()
	api := c.informers.Configbutler().V1alpha1()
	for _, e := range as[*v1alpha1.Environment](api.Environments().Informer().GetStore().List()) {
		status := metav1.ConditionUnknown
		if ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			status = ready.Status
		}
		out.ready[status]++
		out.countOpen(c.openOf(e))
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

func setGauges(to numbers) {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
		environmentsGauge.WithLabelValues(string(status)).Set(float64(to.ready[status]))
	}
	waitingGauge.Set(float64(to.waiting))
	activeGauge.Set(float64(to.active))
	awaitingGauge.WithLabelValues(string(v1alpha1.SyncStateManualIntervention)).Set(float64(to.awaiting))
	awaitingGauge.WithLabelValues(string(v1alpha1.SyncStateConflicted)).Set(float64(to.conflicts))
}
