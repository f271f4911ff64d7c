// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect_test

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
)

func TestEventsAreCounted(t *testing.T) {
	s := begunFixture(t)
	s.rests()
	counts := map[string]float64{}
	count := func() (changed map[string]float64) {
		changed = map[string]float64{}
		now := metrictest.Values(t)
		received := 0.0
		for _, resource := range []string{"configmaps", "serviceaccounts"} {
			received += now["dependency_events_received_total "+resource]
		}
		for name, value := range map[string]float64{
			"received": received, "mapped": now["dependency_events_mapped_total"],
			"not copied": now["dependency_events_ignored_total not_copied"],
			"unchanged":  now["dependency_events_ignored_total unchanged"],
			"begun":      now["dependency_records_total begun"], "changed": now["dependency_records_total changed"],
			"superseded": now["dependency_records_total superseded"],
			"measured":   now["dependency_record_duration_seconds"],
			"closed":     now["dependency_intake_batches_closed_total"],
		} {
			changed[name] = value - counts[name]
			counts[name] = value
		}
		return changed
	}
	count()
	s.put("settings", "2")
	s.put("settings", "2") // The same as the pending change.
	s.put("queue", "1")
	s.put("other", "1")
	s.arrived(1)
	s.stays("alice Pending* Changed ConfigMap settings", "bob Pending* Changed ConfigMap settings")
	s.put("settings", "2") // The same as the recorded change.
	s.put("queue", "2")
	s.put("account-web", "2")
	s.arrived(3)
	s.stays("alice Pending* Changed ConfigMap queue Changed ConfigMap settings Changed ServiceAccount account-web",
		"bob Pending* Changed ConfigMap settings")
	s.put("settings", "1")
	s.arrived(4)
	s.stays("alice Pending* Changed ConfigMap queue Changed ServiceAccount account-web", "bob Superseded Changed ConfigMap settings")
	got := count()
	for name, want := range map[string]float64{
		"received": 8, "mapped": 4, "not copied": 1, "unchanged": 3, "begun": 2, "changed": 2, "superseded": 1, "measured": 2, "closed": 3,
	} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
}
