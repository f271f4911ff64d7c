// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// pipelineLists have a row for each way in which a cell of a pipeline can look.
func pipelineLists() map[string]runtime.Object {
	row := func(name string, sinks int, status configbutler.SyncPipelineStatus) configbutler.SyncPipeline {
		meta := named(name, 26*time.Hour)
		meta.Namespace, meta.Generation = "", 1
		pipeline := configbutler.SyncPipeline{
			ObjectMeta: meta, Spec: configbutler.SyncPipelineSpec{Mode: configbutler.PipelineModeWatch}, Status: status,
		}
		for i := range sinks {
			pipeline.Spec.Sinks = append(pipeline.Spec.Sinks, configbutler.PipelineSink{Name: fmt.Sprint("sink-", i)})
		}
		return pipeline
	}
	delivered := func(at ...time.Duration) []configbutler.PipelineSinkStatus {
		var sinks []configbutler.PipelineSinkStatus
		for i, d := range at {
			sinks = append(sinks, configbutler.PipelineSinkStatus{Name: fmt.Sprint("sink-", i), LastDeliveryTime: new(before(d)), Delivered: 300})
		}
		return sinks
	}
	failing := append(delivered(time.Hour), configbutler.PipelineSinkStatus{
		Name: "sink-1", Pending: 12, Rejected: 2, Failures: 3, NextAttemptTime: new(metav1.NewTime(noon.Add(8 * time.Second))),
		LastError: &configbutler.SyncError{Reason: v1alpha1.ReasonDeliveryFailed, Message: "answered 503 Service Unavailable"},
	})
	return map[string]runtime.Object{"syncpipelines": &configbutler.SyncPipelineList{Items: []configbutler.SyncPipeline{
		row("new", 1, configbutler.SyncPipelineStatus{}),
		row("idle", 3, configbutler.SyncPipelineStatus{
			ObservedGeneration: 1, WatchedTypes: 42, Objects: 1200, LastResyncTime: new(before(20 * time.Minute)),
			Sinks:      delivered(time.Hour, 5*time.Minute, 2*time.Hour),
			Conditions: ready(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "Everything is seen"),
		}),
		row("busy", 16, configbutler.SyncPipelineStatus{
			ObservedGeneration: 1, WatchedTypes: 42, Objects: 5000, Pending: 9880,
			CurrentRun: &configbutler.PipelineRun{Phase: configbutler.PipelineRunSending, Done: 120, Total: 10000},
		}),
		row("failing", 2, configbutler.SyncPipelineStatus{
			ObservedGeneration: 1, WatchedTypes: 1, Objects: 300, Pending: 12, Sinks: failing,
			Conditions: ready(metav1.ConditionFalse, v1alpha1.ReasonDeliveryFailed, "Sink sink-1 fails"),
		}),
	}}}
}
