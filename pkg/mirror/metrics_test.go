// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"testing"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

func TestMetrics(t *testing.T) {
	s := newStage(t)
	s.idle()
	counters := map[string]*metrics.Counter{
		"objects_scanned_total": objectsScanned, "objects_written_total": objectsWritten, "files_deleted_total": filesDeleted,
		"commits_total": commits, "commit_bytes_total": commitBytes, "commit_batches_total": commitBatches, "push_retries_total": pushRetries,
	}
	read := func() map[string]float64 {
		values := map[string]float64{}
		for name, counter := range counters {
			value, err := testutil.GetCounterMetricValue(counter)
			if err != nil {
				t.Fatal(err)
			}
			values[name] = value
		}
		return values
	}
	before := read()
	s.git.loseAnswers.Store(1)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.cluster.put(configMap("b"), "1")
	s.mirrored()
	s.cluster.remove(configMap("a"))
	s.mirrored()
	s.idle()
	s.compareAgain()
	s.idle()
	// Other tests count as well at the same time.
	for name, value := range read() {
		if value <= before[name] {
			t.Errorf("%s does not grow", name)
		}
	}
}
