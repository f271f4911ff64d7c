// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package summary_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

type pipe = *v1alpha1.SyncPipeline

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// pipeline returns a pipeline whose sinks are up to date.
func pipeline() pipe {
	return &v1alpha1.SyncPipeline{
		ObjectMeta: metav1.ObjectMeta{Name: "knowledge", Generation: 3},
		Status: v1alpha1.SyncPipelineStatus{
			ObservedGeneration: 3, Objects: 300,
			Sinks: []v1alpha1.PipelineSinkStatus{{Name: "assistant", Delivered: 300}, {Name: "inventory", Delivered: 300}, {Name: "scan"}},
		},
	}
}

func unready(reason, message string) func(pipe) {
	return func(p pipe) {
		p.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		}}
	}
}

func failing(sink int, failures int32, next time.Duration, message string) func(pipe) {
	return func(p pipe) {
		status := &p.Status.Sinks[sink]
		status.Failures, status.NextAttemptTime = failures, &metav1.Time{Time: noon.Add(next)}
		status.LastError = &v1alpha1.SyncError{Reason: v1alpha1.ReasonDeliveryFailed, Message: message}
	}
}

func refusing(sink int, refused int64, message string) func(pipe) {
	return func(p pipe) {
		p.Status.Sinks[sink].Rejected = refused
		p.Status.Sinks[sink].LastError = &v1alpha1.SyncError{Reason: v1alpha1.ReasonDeliveryRejected, Message: message}
	}
}

func pending(n int64) func(pipe) { return func(p pipe) { p.Status.Pending = n } }

func run(phase v1alpha1.PipelineRunPhase, done, total int64) func(pipe) {
	return func(p pipe) { p.Status.CurrentRun = &v1alpha1.PipelineRun{Phase: phase, Done: done, Total: total} }
}

func TestPipeline(t *testing.T) {
	sending := run(v1alpha1.PipelineRunSending, 120, 10000)
	switchedOff := unready(v1alpha1.ReasonPipelinesSuspended, "pipelines are switched off by SyncPolicy default")
	tests := []struct {
		want string
		with []func(pipe)
	}{
		{"Up to date", nil},
		{"12 waiting", []func(pipe){pending(12)}},
		{"1,234,567 waiting", []func(pipe){pending(1234567)}},
		{"Sending 120 of 10,000", []func(pipe){pending(9880), sending}},
		{"Listing", []func(pipe){run(v1alpha1.PipelineRunListing, 0, 0)}},
		{"Listing", []func(pipe){unready(v1alpha1.ReasonProgressing, "What the pipeline selects is being listed")}},
		{
			"assistant: 503 Service Unavailable, next attempt in 8s",
			[]func(pipe){sending, failing(0, 2, 7600*time.Millisecond, "503 Service Unavailable")},
		},
		{"assistant: refused, being tried again", []func(pipe){failing(0, 1, -time.Second, "refused")}},
		{"inventory: no answer, next attempt in 5m; also failing: assistant, scan", []func(pipe){
			failing(0, 1, time.Second, "503"), failing(2, 2, time.Second, "404"), failing(1, 3, 5*time.Minute, "no\nanswer"),
		}},
		{"assistant: 503, given up after 5 attempts", []func(pipe){failing(0, 5, 0, "503"), func(p pipe) {
			p.Status.Sinks[0].NextAttemptTime = nil
		}}},
		{
			"assistant: failed, next attempt in 1s",
			[]func(pipe){failing(0, 5, time.Second, ""), func(p pipe) { p.Status.Sinks[0].LastError = nil }},
		},
		{
			"inventory refuses 3,000 of the objects: 400 Bad Request",
			[]func(pipe){sending, refusing(0, 1, "413"), refusing(1, 3000, "400 Bad Request")},
		},
		{"inventory refuses 1 of the objects", []func(pipe){refusing(1, 1, "")}},
		{"Held: pipelines are switched off by SyncPolicy default", []func(pipe){pending(12), failing(0, 1, 0, "503"), switchedOff}},
		{"Held: jane may not list secrets", []func(pipe){unready(v1alpha1.ReasonPermissionLost, "jane may not list secrets")}},
		{
			"widgets.shop.io cannot be listed: forbidden",
			[]func(pipe){pending(2), unready(v1alpha1.ReasonWatchFailed, "widgets.shop.io cannot be listed: forbidden")},
		},
		{"Suspended", []func(pipe){switchedOff, func(p pipe) { p.Spec.Suspend = true }}},
		{"Taking over a change of the spec", []func(pipe){pending(2), func(p pipe) { p.Generation = 4 }}},
		{"Not looked at yet", []func(pipe){func(p pipe) { p.Status = v1alpha1.SyncPipelineStatus{} }}},
		{"Deleting", []func(pipe){func(p pipe) { p.DeletionTimestamp, p.Spec.Suspend = &metav1.Time{}, true }}},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			p := pipeline()
			for _, do := range test.with {
				do(p)
			}
			if got := summary.Pipeline(p, noon); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestPipelineRun(t *testing.T) {
	for want, of := range map[string]v1alpha1.PipelineRun{
		"The run has finished: every sink knew what there is": {Sinks: []v1alpha1.PipelineRunSink{{Name: "assistant"}}},
		"The run has finished: assistant took 1,200 (200 OK); " +
			"inventory took 10 and refused 2 (400 Bad Request: no name); scan knew what there is": {
			Total: 1212, Done: 1212, Sinks: []v1alpha1.PipelineRunSink{
				{Name: "assistant", Total: 1200, Done: 1200, Answer: "200 OK"},
				{Name: "inventory", Total: 12, Done: 12, Rejected: 2, Answer: "400 Bad Request:\nno name"},
				{Name: "scan"},
			},
		},
		"The run has finished: scan took 1": {Total: 1, Done: 1, Sinks: []v1alpha1.PipelineRunSink{{Name: "scan", Total: 1, Done: 1}}},
	} {
		if got := summary.PipelineRun(&of); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
