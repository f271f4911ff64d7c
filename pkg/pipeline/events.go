// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	controllerevents "github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Reasons of Events for finished runs that a user has requested.
const (
	// reasonSynced means that every sink accepted everything.
	reasonSynced = "Synced"
	// reasonSyncedPartly means that some did not.
	reasonSyncedPartly = "SyncedPartly"
)

// events records the Events of pipelines. An Event is recorded after the status was written, so a process that dies in between loses one
// and none is recorded twice.
type events struct {
	recorder   controllerevents.Recorder
	conditions *controllerevents.Announcer
}

func newEvents(recorder controllerevents.Recorder) *events {
	reasons := controllerevents.ReadyReasons{
		Ignore: []string{v1alpha1.ReasonSuspended, v1alpha1.ReasonPipelinesSuspended}, // A user wants it so.
	}
	return &events{recorder, controllerevents.New(recorder, reasons.Troubles)}
}

// finished records the end of a run that a user has requested. Periodic resyncs make no Events.
func (e *events) finished(p *v1alpha1.SyncPipeline, run *v1alpha1.PipelineRun) {
	if run.Actor == "" {
		return
	}
	kind, reason := corev1.EventTypeNormal, reasonSynced
	var parts []string
	for _, sink := range run.Sinks {
		if sink.Rejected > 0 || sink.Done < sink.Total {
			kind, reason = corev1.EventTypeWarning, reasonSyncedPartly
		}
		parts = append(parts, sentOf(sink))
	}
	e.recorder.Event(p, kind, reason, fmt.Sprintf("The sync that %s asked for has ended: %s", run.Actor, strings.Join(parts, ", ")))
}

// sentOf returns text like "12 objects sent to search, of which it refused 2".
func sentOf(sink v1alpha1.PipelineRunSink) string {
	text := fmt.Sprintf("%s sent to %s", summary.Count(int(sink.Done), "object"), sink.Name)
	if sink.Rejected > 0 {
		text += fmt.Sprintf(", of which it refused %d", sink.Rejected)
	}
	if left := sink.Total - sink.Done; left > 0 {
		text += fmt.Sprintf(", and %d are still pending", left)
	}
	return text
}
