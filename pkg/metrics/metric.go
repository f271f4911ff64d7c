// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics creates the server's metrics: all names begin with slipstream_, and the stability level is alpha.
// Callers register the metrics.
package metrics

import "k8s.io/component-base/metrics"

// namespace is the prefix of the names, without its underscore.
const namespace = "slipstream"

// NewCounter returns a counter without labels.
func NewCounter(name, help string) *metrics.Counter { return metrics.NewCounter(counter(name, help)) }

// NewCounterVec returns a counter for each combination of labels.
func NewCounterVec(name, help string, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(counter(name, help), labels)
}

// NewGauge returns a gauge without labels.
func NewGauge(name, help string) *metrics.Gauge { return metrics.NewGauge(gauge(name, help)) }

// NewGaugeVec returns a gauge for each combination of labels.
func NewGaugeVec(name, help string, labels ...string) *metrics.GaugeVec {
	return metrics.NewGaugeVec(gauge(name, help), labels)
}

// NewHistogram returns a histogram without labels. The buckets are upper bounds in the unit of the name's suffix.
func NewHistogram(name, help string, buckets []float64) *metrics.Histogram {
	return metrics.NewHistogram(histogram(name, help, buckets))
}

// NewHistogramVec returns a histogram for each combination of labels.
func NewHistogramVec(name, help string, buckets []float64, labels ...string) *metrics.HistogramVec {
	return metrics.NewHistogramVec(histogram(name, help, buckets), labels)
}

// NewDesc describes a metric whose value is computed at each scrape.
func NewDesc(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc(metrics.BuildFQName(namespace, "", name), help, labels, nil, metrics.ALPHA, "")
}

func counter(name, help string) *metrics.CounterOpts {
	return &metrics.CounterOpts{Namespace: namespace, Name: name, Help: help, StabilityLevel: metrics.ALPHA}
}

func gauge(name, help string) *metrics.GaugeOpts {
	return &metrics.GaugeOpts{Namespace: namespace, Name: name, Help: help, StabilityLevel: metrics.ALPHA}
}

func histogram(name, help string, buckets []float64) *metrics.HistogramOpts {
	return &metrics.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets, StabilityLevel: metrics.ALPHA}
}
