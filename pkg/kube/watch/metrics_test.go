// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
	"github.com/configbutler/slipstream/test/testkit"
)

func TestMetricsOfWatches(t *testing.T) {
	const controller = "metered"
	server, config := newAPIServer(t)
	handler := &recorder{}
	streams := watch.NewStreams(controller, objects(t, config), handler)
	run(t, streams.Run)
	set(t, streams, shopWidgets)
	server.expectWatching(t, 1)
	testkit.EventuallyTrue(t, "an open watch", func() bool { return metrictest.Values(t)["watches "+controller+" open"] == 1 })
	server.happen("ADDED", "a")
	handler.expect(t, "listed 100", "CREATE a 101")
	if received := metrictest.Values(t)["watch_events_received_total "+controller]; received != 1 {
		t.Errorf("%v changes have come, want 1", received)
	}

	silent := metrictest.Values(t)["watch_silence_seconds "+controller]
	testkit.EventuallyTrue(t, "silence to grow", func() bool {
		return metrictest.Values(t)["watch_silence_seconds "+controller] > silent+0.2
	})
	silent = metrictest.Values(t)["watch_silence_seconds "+controller]
	testkit.EventuallyTrue(t, "a bookmark to end the silence", func() bool {
		server.bookmark() // Each time, since the silence grows again before it is read.
		return metrictest.Values(t)["watch_silence_seconds "+controller] < silent
	})

	server.refuse(status(http.StatusForbidden, metav1.StatusReasonForbidden, "no"))
	server.endWatches(status(http.StatusInternalServerError, metav1.StatusReasonUnknown, "something broke"))
	testkit.EventuallyTrue(t, "a failing watch", func() bool {
		now := metrictest.Values(t)
		return now["watches "+controller+" failing"] == 1 && now["watches "+controller+" open"] == 0
	})
	silent = metrictest.Values(t)["watch_silence_seconds "+controller]
	testkit.EventuallyTrue(t, "the silence of a failing watch to grow", func() bool {
		return metrictest.Values(t)["watch_silence_seconds "+controller] > silent
	})

	set(t, streams)
	if _, there := metrictest.Values(t)["watches "+controller+" open"]; there {
		t.Error("there are metrics of watches that were stopped")
	}
}
