// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrictest answers what the server's metrics are in a test. Tests that go on at the same time have the same ones.
package metrictest

import (
	"strings"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
)

// Values are all metrics of the server's own, by their names without slipstream_ and the values of their labels in the order of
// those labels' names, such as "watches mirror open"; of a histogram, how often it was observed.
func Values(t testing.TB) map[string]float64 {
	t.Helper()
	values, _ := gather(t)
	return values
}

// Sums are the sums of what histograms have observed, by the same names.
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
