// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	slipmetrics "github.com/configbutler/slipstream/pkg/metrics"
)

const (
	// metricsPrefix is the prefix of the names of metrics, after the server's own.
	metricsPrefix = "storage_"
	// storeLabel is the name of the file without its extension: api or work.
	storeLabel = "store"
)

// Reasons for which a write fails.
const (
	failedDiskFull = "disk_full"
	failedIO       = "io"
	// failedRefused is the reason of writes after a commit that may be lost, until the file is opened again.
	failedRefused = "refused"
)

// What is counted while the engine works. [NewCollector] looks at the rest when it is asked.
var (
	commitSeconds = slipmetrics.NewHistogramVec(metricsPrefix+"commit_duration_seconds",
		"Time to apply the writes of one commit and to sync them to disk.",
		metrics.ExponentialBuckets(0.00025, 2, 16), storeLabel)
	commitRequests = slipmetrics.NewHistogramVec(metricsPrefix+"commit_requests",
		"Writes that shared one commit.",
		metrics.ExponentialBuckets(1, 2, 11), storeLabel)
	compactionSeconds = slipmetrics.NewHistogramVec(metricsPrefix+"compaction_duration_seconds",
		"Time that a compaction took from its beginning until what it frees could be used again.",
		metrics.ExponentialBuckets(0.001, 4, 9), storeLabel)
	writeFailures = slipmetrics.NewCounterVec(metricsPrefix+"write_failures_total",
		"Writes that failed: for lack of space (disk_full), for another error of the disk (io), or because an earlier one may be lost (refused).",
		storeLabel, "reason")
)

func init() {
	legacyregistry.MustRegister(commitSeconds, commitRequests, compactionSeconds, writeFailures)
}

// observers are the metrics of one engine.
type observers struct {
	store                                            string
	commitSeconds, commitRequests, compactionSeconds metrics.ObserverMetric
	diskFull, io, refused                            metrics.CounterMetric
}

// newObservers creates the metrics of every reason, so that a first failure is an increase.
func newObservers(store string) observers {
	return observers{
		store:             store,
		commitSeconds:     commitSeconds.WithLabelValues(store),
		commitRequests:    commitRequests.WithLabelValues(store),
		compactionSeconds: compactionSeconds.WithLabelValues(store),
		diskFull:          writeFailures.WithLabelValues(store, failedDiskFull),
		io:                writeFailures.WithLabelValues(store, failedIO),
		refused:           writeFailures.WithLabelValues(store, failedRefused),
	}
}

// storeName returns the label value for the store of a file.
func storeName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

func (o observers) committed(requests int, took time.Duration) {
	o.commitSeconds.Observe(took.Seconds())
	o.commitRequests.Observe(float64(requests))
}

func (o observers) compacted(took time.Duration) { o.compactionSeconds.Observe(took.Seconds()) }

// failed counts the writes of a batch of which nothing was stored. refused reports that the engine refused writes before
// it.
func (o observers) failed(requests int, cause error, refused bool) {
	counter := o.io
	switch {
	case refused:
		counter = o.refused
	case errors.Is(cause, ErrDiskFull):
		counter = o.diskFull
	}
	counter.Add(float64(requests))
}
