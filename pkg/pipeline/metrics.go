// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"strings"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	slipmetrics "github.com/configbutler/slipstream/pkg/metrics"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// The labels are the names of pipelines and their sinks, which administrators create in small numbers. Metrics are removed with them.
var (
	objectsGauge = slipmetrics.NewGaugeVec("pipeline_objects", "CustomResourceDefinitions and objects that a pipeline selects.", "pipeline")
	typesGauge   = slipmetrics.NewGaugeVec("pipeline_watched_types", "Types that a pipeline watches or lists.", "pipeline")
	pendingGauge = slipmetrics.NewGaugeVec("pipeline_pending_objects", "Objects with a change that a sink has not received yet.",
		"pipeline", "sink")
	oldestGauge = slipmetrics.NewGaugeVec("pipeline_oldest_pending_seconds",
		"Age of the oldest due change that a sink has not received. 0 if there is none.", "pipeline", "sink")
	rejectedGauge = slipmetrics.NewGaugeVec("pipeline_rejected_objects", "Objects whose last change a sink has rejected.", "pipeline", "sink")
	failuresGauge = slipmetrics.NewGaugeVec("pipeline_sink_failures", "Consecutive failed attempts to deliver to a sink.", "pipeline", "sink")

	deliveries = slipmetrics.NewCounterVec("pipeline_deliveries_total",
		"Calls of a sink, by result: delivered, rejected, retry (to be made again), or waiting (until the Job before has finished).",
		"pipeline", "sink", "result")
	items = slipmetrics.NewCounterVec("pipeline_items_sent_total",
		"Objects that were sent to a sink, deletions included.", "pipeline", "sink")
	retries       = slipmetrics.NewCounterVec("pipeline_retries_total", "Attempts to deliver to a sink after a failure.", "pipeline", "sink")
	deliverySpent = slipmetrics.NewHistogramVec("pipeline_delivery_duration_seconds",
		"Duration of the delivery of a batch, with all its calls.",
		[]float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}, "pipeline", "sink")
)

func init() {
	legacyregistry.MustRegister(objectsGauge, typesGauge, pendingGauge, oldestGauge, rejectedGauge, failuresGauge,
		deliveries, items, retries, deliverySpent)
}

// outcomes are the values of the result label.
var outcomes = []format.Outcome{format.Delivered, format.Rejected, format.Retry, format.Waiting}

// sinkNumbers are the metrics of one sink.
type sinkNumbers struct{ pipeline, sink string }

// numbersOf returns the metrics of a sink. It initializes the counters with 0, so that the first increment is visible as an increase.
func numbersOf(pipeline, sink string) sinkNumbers {
	n := sinkNumbers{pipeline, sink}
	for _, outcome := range outcomes {
		n.deliveries(outcome).Add(0)
	}
	items.WithLabelValues(pipeline, sink).Add(0)
	retries.WithLabelValues(pipeline, sink).Add(0)
	return n
}

func (n sinkNumbers) deliveries(outcome format.Outcome) metrics.CounterMetric {
	return deliveries.WithLabelValues(n.pipeline, n.sink, strings.ToLower(string(outcome)))
}

func (n sinkNumbers) counted(outcome format.Outcome) { n.deliveries(outcome).Inc() }
func (n sinkNumbers) sent(objects int) {
	items.WithLabelValues(n.pipeline, n.sink).Add(float64(objects))
}
func (n sinkNumbers) retried() { retries.WithLabelValues(n.pipeline, n.sink).Inc() }
func (n sinkNumbers) took(d time.Duration) {
	deliverySpent.WithLabelValues(n.pipeline, n.sink).Observe(d.Seconds())
}

// set sets the gauges: the counts of the ledger, the age of the oldest pending change, and the consecutive failures.
func (n sinkNumbers) set(counts ledger.Counts, age time.Duration, failures int) {
	pendingGauge.WithLabelValues(n.pipeline, n.sink).Set(float64(counts.Pending))
	oldestGauge.WithLabelValues(n.pipeline, n.sink).Set(max(0, age).Seconds())
	rejectedGauge.WithLabelValues(n.pipeline, n.sink).Set(float64(counts.Rejected))
	failuresGauge.WithLabelValues(n.pipeline, n.sink).Set(float64(failures))
}

// forget removes the metrics of a sink.
func (n sinkNumbers) forget() {
	of := map[string]string{"pipeline": n.pipeline, "sink": n.sink}
	for _, gauge := range []*metrics.GaugeVec{pendingGauge, oldestGauge, rejectedGauge, failuresGauge} {
		gauge.Delete(of)
	}
	for _, outcome := range outcomes {
		deliveries.Delete(map[string]string{"pipeline": n.pipeline, "sink": n.sink, "result": strings.ToLower(string(outcome))})
	}
	items.Delete(of)
	retries.Delete(of)
	deliverySpent.Delete(of)
}

// forgetPipeline removes the metrics of a pipeline.
func forgetPipeline(name string) {
	of := map[string]string{"pipeline": name}
	objectsGauge.Delete(of)
	typesGauge.Delete(of)
}
