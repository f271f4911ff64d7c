// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// measurePeriod is the maximum age of the gauges. It is shorter than the usual scrape interval.
const measurePeriod = 5 * time.Second

// gauges keeps the gauges of catalogs up to date.
type gauges struct {
	lister  *lister
	sources *reachability
	clock   clock.WithTicker
}

// run updates the gauges until ctx ends. Then it sets them to 0, because the next leader reports them.
func (g *gauges) run(ctx context.Context) {
	defer counts{}.publish()
	ticker := g.clock.NewTicker(measurePeriod)
	defer ticker.Stop()
	for {
		g.count().publish()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// counts are the values of the gauges.
type counts struct {
	// ready is the number of catalogs by the status of their condition Ready.
	ready                                   map[metav1.ConditionStatus]int
	missing, awaiting, sources, unreachable int
}

func (g *gauges) count() counts {
	out := counts{ready: map[metav1.ConditionStatus]int{}}
	for _, namespace := range g.lister.namespaces() {
		catalogs := g.lister.catalogs(namespace)
		if len(catalogs) == 0 {
			continue
		}
		out.sources++
		if source := g.sources.of(namespace); !source.IsZero() && source.Code != v1alpha1.ReasonProgressing {
			out.unreachable++
		}
		for _, catalog := range catalogs {
			out.add(catalog)
		}
	}
	for _, record := range g.lister.recordsIn(v1alpha1.SyncStateManualIntervention) {
		if g.lister.subject(record) != nil {
			out.awaiting++
		}
	}
	return out
}

func (c *counts) add(catalog *v1alpha1.AppCatalog) {
	status := metav1.ConditionUnknown
	if ready := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		status = ready.Status
	}
	c.ready[status]++
	for _, entry := range catalog.Status.Workloads {
		if entry.Missing {
			c.missing++
		}
	}
}

func (c counts) publish() {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
		catalogsGauge.WithLabelValues(string(status)).Set(float64(c.ready[status]))
	}
	missingGauge.Set(float64(c.missing))
	awaitingGauge.Set(float64(c.awaiting))
	sourcesGauge.Set(float64(c.sources))
	unreachableGauge.Set(float64(c.unreachable))
}
