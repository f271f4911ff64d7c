// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/component-base/metrics"

	slipmetrics "github.com/configbutler/slipstream/pkg/metrics"
)

type counted struct{ metrics.BaseStableCollector }

var desc = slipmetrics.NewDesc("looked_up", "f", "of")

func (*counted) DescribeWithStability(descs chan<- *metrics.Desc) { descs <- desc }

func (*counted) CollectWithStability(out chan<- metrics.Metric) {
	out <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, 6, "g")
}

// Every kind of metric has the server's name, its labels, and the word that it may change.
func TestMetrics(t *testing.T) {
	counter, counters := slipmetrics.NewCounter("one_total", "a"), slipmetrics.NewCounterVec("many_total", "b", "of", "by")
	gauge, gauges := slipmetrics.NewGauge("one", "c"), slipmetrics.NewGaugeVec("many", "d", "of")
	histogram := slipmetrics.NewHistogram("one_seconds", "e", []float64{1, 2})
	histograms := slipmetrics.NewHistogramVec("many_seconds", "e", []float64{3}, "of")
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(counter, counters, gauge, gauges, histogram, histograms)
	registry.CustomMustRegister(&counted{})
	counter.Add(1)
	counters.WithLabelValues("x", "y").Add(2)
	gauge.Set(3)
	gauges.WithLabelValues("z").Set(4)
	histogram.Observe(1.5)
	histograms.WithLabelValues("w").Observe(5)

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, family := range families {
		if !strings.HasPrefix(family.GetHelp(), "[ALPHA] ") {
			t.Errorf("the help of %s is %q", family.GetName(), family.GetHelp())
		}
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName()+"="+label.GetValue())
		}
		got[family.GetName()] = strings.Join(labels, " ")
	}
	want := map[string]string{
		"slipstream_one_total": "", "slipstream_many_total": "by=y of=x", "slipstream_one": "", "slipstream_many": "of=z",
		"slipstream_one_seconds": "", "slipstream_many_seconds": "of=w", "slipstream_looked_up": "of=g",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
