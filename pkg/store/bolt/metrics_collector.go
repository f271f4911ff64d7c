// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"path/filepath"

	"k8s.io/component-base/metrics"

	slipmetrics "github.com/configbutler/slipstream/pkg/metrics"
)

var (
	sizeDesc       = newDesc("size_bytes", "Size of the file.")
	freeDesc       = newDesc("free_bytes", "Free space within the file.")
	volumeFreeDesc = newDesc("volume_free_bytes", "Free space on the volume of the file.")
	volumeSizeDesc = newDesc("volume_size_bytes", "Size of the volume of the file.")
	keysDesc       = newDesc("keys", "Keys that exist.")
	leasesDesc     = newDesc("leases", "Leases that have not expired.")
	revisionDesc   = newDesc("revision", "Revision of the last change.")
	compactDesc    = newDesc("compact_revision", "Oldest revision that can be read; watches begin after it.")
	watchersDesc   = newDesc("watchers", "Watches that are open.")
	watcherLagDesc = newDesc("watcher_lag_revisions", "Revisions that the slowest watch has not processed yet.")
)

func newDesc(name, help string) *metrics.Desc {
	return slipmetrics.NewDesc(metricsPrefix+name, help, storeLabel)
}

// collector reads the state of engines when metrics are collected.
type collector struct {
	metrics.BaseStableCollector
	engines []*Engine
}

var _ metrics.StableCollector = &collector{}

// NewCollector returns a collector for the gauges of open engines, whose files must have different names. A closed engine
// has no metrics.
func NewCollector(engines ...*Engine) metrics.StableCollector {
	return &collector{engines: engines}
}

// DescribeWithStability implements metrics.StableCollector.
func (c *collector) DescribeWithStability(descs chan<- *metrics.Desc) {
	for _, desc := range []*metrics.Desc{
		sizeDesc, freeDesc, volumeFreeDesc, volumeSizeDesc, keysDesc, leasesDesc, revisionDesc, compactDesc, watchersDesc, watcherLagDesc,
	} {
		descs <- desc
	}
}

// CollectWithStability implements metrics.StableCollector.
func (c *collector) CollectWithStability(out chan<- metrics.Metric) {
	for _, e := range c.engines {
		measure(e, func(desc *metrics.Desc, value int64) {
			out <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, float64(value), e.metrics.store)
		})
	}
}

// measure reports the gauges of an open engine, none of a closed one.
func measure(e *Engine, report func(desc *metrics.Desc, value int64)) {
	total, used, err := e.reader.size()
	if err != nil {
		return
	}
	var keys int64
	err = e.reader.view(func(s snapshot) error {
		keys = s.countKeys(newSpan([]byte{'/'}, []byte{'/' + 1}))
		return nil
	})
	if err != nil {
		return
	}
	head, compacted := e.feed.revisions()
	watchers, slowest := e.watches.open.slowest(head)
	report(sizeDesc, total)
	report(freeDesc, total-used)
	if free, size, err := volumeOf(filepath.Dir(e.Path())); err == nil {
		report(volumeFreeDesc, free)
		report(volumeSizeDesc, size)
	}
	report(keysDesc, keys)
	report(leasesDesc, int64(e.leases.size()))
	report(revisionDesc, head)
	report(compactDesc, compacted)
	report(watchersDesc, int64(watchers))
	report(watcherLagDesc, head-slowest)
}
