// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// measurePeriod is how old the gauges are at most. It is shorter than what metrics are usually read in.
	measurePeriod = 5 * time.Second
	// byState is the index of the records of catalogs by their state.
	byState = "catalog/state"
)

// stateOf is the state of a record of a catalog.
func stateOf(object any) ([]string, error) {
	if record, ok := object.(*v1alpha1.SyncStatus); ok && record.Spec.Type == v1alpha1.SyncTypeCatalog {
		return []string{string(record.Status.State)}, nil
	}
	return nil, nil
}

// measureUntil keeps the gauges until ctx ends. Afterwards they are 0: whoever leads next tells.
func (c *catalogs) measureUntil(ctx context.Context) {
	defer setGauges(numbers{})
	ticker := c.shared.Clock.NewTicker(measurePeriod)
	defer ticker.Stop()
	for {
		setGauges(c.count())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// numbers are what the gauges show.
type numbers struct {
	ready                                   map[metav1.ConditionStatus]int
	missing, awaiting, sources, unreachable int
}

// count counts what there is.
func (c *catalogs) count() numbers {
	api := c.informers.Configbutler().V1alpha1()
	out := numbers{ready: map[metav1.ConditionStatus]int{}}
	for _, namespace := range api.AppCatalogs().Informer().GetIndexer().ListIndexFuncValues(bySource) {
		following := c.following(namespace)
		if len(following) == 0 {
			continue
		}
		out.sources++
		if reach := c.reach.of(namespace); !reach.ok() && reach.reason != v1alpha1.ReasonProgressing {
			out.unreachable++
		}
		for _, catalog := range following {
			out.add(catalog)
		}
	}
	// The index is there since before the informer was started.
	awaiting, _ := api.SyncStatuses().Informer().GetIndexer().ByIndex(byState, string(v1alpha1.SyncStateManualIntervention))
	for _, object := range awaiting {
		if record, ok := object.(*v1alpha1.SyncStatus); ok && c.subject(record) != nil {
			out.awaiting++
		}
	}
	return out
}

func (n *numbers) add(catalog *v1alpha1.AppCatalog) {
	status := metav1.ConditionUnknown
	if ready := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		status = ready.Status
	}
	n.ready[status]++
	for _, entry := range catalog.Status.Workloads {
		if entry.Missing {
			n.missing++
		}
	}
}

func setGauges(to numbers) {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
		catalogsGauge.WithLabelValues(string(status)).Set(float64(to.ready[status]))
	}
	missingGauge.Set(float64(to.missing))
	awaitingGauge.Set(float64(to.awaiting))
	sourcesGauge.Set(float64(to.sources))
	unreachableGauge.Set(float64(to.unreachable))
}
