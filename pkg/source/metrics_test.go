// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/source"
)

// metered reads the metrics of a controller's watches, by name, and with the state if there is one.
func metered(t *testing.T, controller string) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			labels := map[string]string{}
			for _, label := range metric.Label {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["controller"] == controller {
				name := strings.TrimSpace(strings.TrimPrefix(family.GetName(), "slipstream_") + " " + labels["state"])
				values[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			}
		}
	}
	return values
}

func TestMetricsOfWatches(t *testing.T) {
	const controller = "metered"
	server, config := newAPIServer(t)
	handler := &recorder{}
	streams := source.NewStreams(controller, objects(t, config), handler)
	run(t, streams.Run)
	set(t, streams, shopWidgets)
	server.expectWatching(t, 1)
	eventually(t, "an open watch", func() bool { return metered(t, controller)["watches open"] == 1 })
	server.happen("ADDED", "a")
	handler.expect(t, "listed 100", "CREATE a 101")
	if received := metered(t, controller)["watch_events_received_total"]; received != 1 {
		t.Errorf("%v changes have come, want 1", received)
	}

	silent := metered(t, controller)["watch_silence_seconds"]
	eventually(t, "silence to grow", func() bool { return metered(t, controller)["watch_silence_seconds"] > silent+0.01 })
	silent = metered(t, controller)["watch_silence_seconds"]
	server.bookmark()
	eventually(t, "a bookmark to end the silence", func() bool { return metered(t, controller)["watch_silence_seconds"] < silent })

	server.refuse(status(http.StatusForbidden, metav1.StatusReasonForbidden, "no"))
	server.endWatches(status(http.StatusInternalServerError, metav1.StatusReasonUnknown, "something broke"))
	eventually(t, "a failing watch", func() bool {
		now := metered(t, controller)
		return now["watches failing"] == 1 && now["watches open"] == 0
	})
	silent = metered(t, controller)["watch_silence_seconds"]
	eventually(t, "the silence of a failing watch to grow", func() bool { return metered(t, controller)["watch_silence_seconds"] > silent })

	set(t, streams)
	if _, there := metered(t, controller)["watches open"]; there {
		t.Error("there are metrics of watches that were stopped")
	}
}
