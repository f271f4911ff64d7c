// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"sync"
	"time"

	"k8s.io/component-base/metrics"

	slipmetrics "github.com/configbutler/slipstream/pkg/metrics"
)

var (
	watchesDesc = slipmetrics.NewDesc("watches",
		"Watches of the source cluster, by controller and by state: open, or failing until the next attempt.",
		"controller", "state")
	silenceDesc = slipmetrics.NewDesc("watch_silence_seconds",
		"Longest time that a watch has received nothing: no change, no bookmark, no new connection.",
		"controller")
)

// watchCollector computes metrics of the running streams when they are collected.
type watchCollector struct {
	metrics.BaseStableCollector

	mutex   sync.Mutex
	streams map[*stream]struct{}
}

var _ metrics.StableCollector = &watchCollector{}

func newWatchCollector() *watchCollector { return &watchCollector{streams: map[*stream]struct{}{}} }

func (c *watchCollector) add(s *stream) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.streams[s] = struct{}{}
}

func (c *watchCollector) remove(s *stream) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.streams, s)
}

// DescribeWithStability sends the descriptions of the metrics.
func (c *watchCollector) DescribeWithStability(descs chan<- *metrics.Desc) {
	descs <- watchesDesc
	descs <- silenceDesc
}

// CollectWithStability sends the metrics of the running streams.
func (c *watchCollector) CollectWithStability(out chan<- metrics.Metric) {
	for controller, seen := range c.sums(time.Now()) {
		out <- metrics.NewLazyConstMetric(watchesDesc, metrics.GaugeValue, float64(seen.open), controller, "open")
		out <- metrics.NewLazyConstMetric(watchesDesc, metrics.GaugeValue, float64(seen.failing), controller, "failing")
		out <- metrics.NewLazyConstMetric(silenceDesc, metrics.GaugeValue, seen.silence.Seconds(), controller)
	}
}

// watchSum is the state of all streams of a controller.
type watchSum struct {
	open, failing int
	silence       time.Duration
}

func (c *watchCollector) sums(now time.Time) map[string]watchSum {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	sums := map[string]watchSum{}
	for s := range c.streams {
		sum := sums[s.controller]
		switch open, failing := s.state(); {
		case open:
			sum.open++
		case failing:
			sum.failing++
		}
		sum.silence = max(sum.silence, now.Sub(s.lastReceived()))
		sums[s.controller] = sum
	}
	return sums
}
