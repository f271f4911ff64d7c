// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// measurePeriod is how often the gauges are updated. It is shorter than usual scrape intervals.
const measurePeriod = 5 * time.Second

// measureUntil updates the gauges until ctx ends, and then resets them, because the next leader reports them.
func (m *mirror) measureUntil(ctx context.Context) {
	defer func() {
		setDestinations(nil)
		oldestChange.Set(0)
		outboxBlocked.Set(0)
	}()
	ticker := time.NewTicker(measurePeriod)
	defer ticker.Stop()
	for {
		setDestinations(m.countReady())
		oldestChange.Set(m.registry.oldest())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// countReady counts the destinations by the status of their condition Ready.
func (m *mirror) countReady() map[metav1.ConditionStatus]int {
	// Listing from an informer does not fail.
	all, _ := m.informers.Configbutler().V1alpha1().GitDestinations().Lister().List(labels.Everything())
	counts := map[metav1.ConditionStatus]int{}
	for _, destination := range all {
		status := metav1.ConditionUnknown
		if ready := meta.FindStatusCondition(destination.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			status = ready.Status
		}
		counts[status]++
	}
	return counts
}

// setDestinations sets the gauge of destinations.
func setDestinations(counts map[metav1.ConditionStatus]int) {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
		destinationsGauge.WithLabelValues(string(status)).Set(float64(counts[status]))
	}
}
