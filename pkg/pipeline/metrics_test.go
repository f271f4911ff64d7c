// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// shows waits until metrics of pipelines have the given values.
func (s *fixture) shows(t *testing.T, want map[string]float64) {
	t.Helper()
	s.eventually("the metrics are right", func() error {
		now := metrictest.Values(t)
		for name, value := range want {
			if got, ok := now["pipeline_"+name]; !ok || got != value {
				return fmt.Errorf("%s = %v, want %v", name, got, value)
			}
		}
		return nil
	})
}

// TestMetrics checks the metrics of a sink that fails, accepts, rejects, and is removed.
func TestMetrics(t *testing.T) {
	s := newFixture(t)
	search := s.receiver()
	p := inventory(sinkTo("search", search))
	p.Name = "metered"
	search.Always(receivertest.Close())
	s.create(p)
	s.start()
	s.shows(t, map[string]float64{
		"objects metered": 3, "watched_types metered": 1, "pending_objects metered search": 3, "items_sent_total metered search": 0,
		"deliveries_total metered delivered search": 0, "deliveries_total metered rejected search": 0, "rejected_objects metered search": 0,
	})
	s.eventually("failures are counted", func() error {
		now := metrictest.Values(t)
		for _, name := range []string{
			"deliveries_total metered retry search", "retries_total metered search", "sink_failures metered search",
			"oldest_pending_seconds metered search", "delivery_duration_seconds metered search",
		} {
			if now["pipeline_"+name] == 0 {
				return fmt.Errorf("%s is 0", name)
			}
		}
		return nil
	})
	search.Always()
	s.shows(t, map[string]float64{
		"pending_objects metered search": 0, "oldest_pending_seconds metered search": 0, "sink_failures metered search": 0,
		"items_sent_total metered search": 3, "deliveries_total metered delivered search": 2,
	})
	search.Next(receivertest.Status(400))
	s.cluster.put("two", "web")
	s.shows(t, map[string]float64{"rejected_objects metered search": 1, "deliveries_total metered rejected search": 1})

	s.edit("metered", func(p *v1alpha1.SyncPipeline) { p.Spec.Suspend = true })
	s.remove("metered")
	s.eventually("metrics of the removed sink are deleted", func() error {
		for name := range metrictest.Values(t) {
			if strings.Contains(name, " metered") {
				return fmt.Errorf("%s still exists", name)
			}
		}
		return nil
	})
}
