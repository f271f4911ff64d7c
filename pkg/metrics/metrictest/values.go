// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrictest reads the server's metrics in tests. Parallel tests share them.
package metrictest

import (
	"strings"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
)

// Values returns the server's own metrics. The keys are names without slipstream_, followed by label values in the
// order of the label names, such as "watches mirror open". The value of a histogram is its count.
func Values(t testing.TB) map[string]float64 {
	t.Helper()
	values, _ := gather(t)
	return values
}

// Sums returns the sums of histograms, by the same keys.
func Sums(t testing.TB) map[string]float64 {
	t.Helper()
	_, sums := gather(t)
	return sums
}

func gather(t testing.TB) (values, sums map[string]float64) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values, sums = map[string]float64{}, map[string]float64{}
	for _, family := range families {
		name, ours := strings.CutPrefix(family.GetName(), "slipstream_")
		if !ours {
			continue
		}
		for _, metric := range family.GetMetric() {
			key := name
			for _, label := range metric.GetLabel() {
				key += " " + label.GetValue()
			}
			values[key] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			sums[key] = metric.GetHistogram().GetSampleSum()
		}
	}
	return values, sums
}
