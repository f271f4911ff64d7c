// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

func syncPipelines() kind[*configbutler.SyncPipeline, configbutler.SyncPipelineSpec, configbutler.SyncPipelineStatus] {
	type obj = *configbutler.SyncPipeline
	return kind[obj, configbutler.SyncPipelineSpec, configbutler.SyncPipelineStatus]{
		plural: "syncpipelines", singular: "syncpipeline", shortNames: []string{"pipe"},
		newObject:             func() obj { return &configbutler.SyncPipeline{} },
		newList:               func() runtime.Object { return &configbutler.SyncPipelineList{} },
		spec:                  func(o obj) *configbutler.SyncPipelineSpec { return &o.Spec },
		status:                func(o obj) *configbutler.SyncPipelineStatus { return &o.Status },
		validate:              validation.ValidateSyncPipeline,
		validateUpdate:        validation.ValidateSyncPipelineUpdate,
		validateStatusUpdate:  validation.ValidateSyncPipelineStatusUpdate,
		validateStatusRequest: validation.ValidateSyncPipelineStatusRequest,
		edits:                 pipelineEdits(),
		columns: []column[obj]{
			textColumn("Mode", "How changes are noticed.", func(o obj) string { return string(o.Spec.Mode) }),
			textColumn("Sinks", "Recipients.", sinkNames),
			numberColumn("Objects", "CustomResourceDefinitions and objects that match.", func(o obj) int64 { return o.Status.Objects }),
			numberColumn("Pending", "Objects with changes that have not been sent to every sink.", func(o obj) int64 { return o.Status.Pending }),
			{name: "State", description: "Summary of the status, in a sentence.", cellType: text, cell: pipelineState},
			wide(numberColumn("Types", "Types whose objects are watched or listed.", func(o obj) int64 { return int64(o.Status.WatchedTypes) })),
			wide(numberColumn("Rejected", "Objects that sinks rejected.", rejectedObjects)),
			wide(agoColumn("Last-Delivery", "Time since a sink last accepted an object.", lastDelivery)),
			wide(agoColumn("Last-Resync", "Time since everything was last sent again.", func(o obj) *metav1.Time {
				return o.Status.LastResyncTime
			})),
			wide(textColumn("Ready", "Whether the pipeline does what its spec says.", func(o obj) string {
				return string(readyCondition(o.Status.Conditions).Status)
			})),
			wide(textColumn("Reason", "Why it is ready or not, in one word.", func(o obj) string {
				return readyCondition(o.Status.Conditions).Reason
			})),
			ageColumn[obj](),
		},
	}
}

// pipelineState returns the state of a pipeline, for tables and messages.
func pipelineState(o *configbutler.SyncPipeline, now time.Time) any {
	pipeline := &v1alpha1.SyncPipeline{}
	if err := v1alpha1.Convert_configbutler_SyncPipeline_To_v1alpha1_SyncPipeline(o, pipeline, nil); err != nil {
		return "" // what is stored has been converted before
	}
	return summary.Pipeline(pipeline, now)
}

// sinkNames returns as many names of sinks as fit a cell.
func sinkNames(o *configbutler.SyncPipeline) string {
	names := make([]string, len(o.Spec.Sinks))
	for i := range o.Spec.Sinks {
		names[i] = o.Spec.Sinks[i].Name
	}
	return abbreviatedList(names, 3)
}

func rejectedObjects(o *configbutler.SyncPipeline) int64 {
	var rejected int64
	for _, sink := range o.Status.Sinks {
		rejected += sink.Rejected
	}
	return rejected
}

// lastDelivery returns the time of the newest delivery to any sink, nil if there was none.
func lastDelivery(o *configbutler.SyncPipeline) *metav1.Time {
	var newest *metav1.Time
	for i := range o.Status.Sinks {
		if at := o.Status.Sinks[i].LastDeliveryTime; newest == nil || newest.Before(at) {
			newest = at
		}
	}
	return newest
}
