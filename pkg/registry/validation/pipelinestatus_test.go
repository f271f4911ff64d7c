// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

// runningPipeline is one that carries out a request while another waits.
func runningPipeline() *configbutler.SyncPipeline {
	pipeline := syncPipeline()
	pipeline.Status = configbutler.SyncPipelineStatus{
		EditedBy: &configbutler.AutomatedBy{Username: "jane"}, WatchedTypes: 12, Objects: 300, Pending: 7,
		CurrentRun: &configbutler.PipelineRun{
			ID: "1", Actor: "jane", Scope: configbutler.PipelineScopeAll, Phase: configbutler.PipelineRunSending, Total: 10, Done: 3,
			Sinks: []configbutler.PipelineRunSink{{Name: "assistant", Total: 10, Done: 3}},
		},
		LastRun: &configbutler.PipelineRun{
			ID: "0", Scope: configbutler.PipelineScopeInstances, Full: true, Phase: configbutler.PipelineRunFinished,
		},
		PendingRequests: []configbutler.PendingPipelineRequest{
			{ID: "1", Actor: "jane", Scope: configbutler.PipelineScopeAll}, {ID: "2", Actor: "joe", Scope: configbutler.PipelineScopeDefinitions},
		},
		Sinks: []configbutler.PipelineSinkStatus{{Name: "assistant", Pending: 7, Delivered: 293}, {Name: "inventory", Delivered: 300}},
	}
	return pipeline
}

func TestSyncPipelineStatus(t *testing.T) {
	for _, c := range []change[pipe]{
		{name: "nothing yet", do: func(p pipe) { p.Status = configbutler.SyncPipelineStatus{} }},
		{name: "a spec that is not valid any more", do: func(p pipe) { p.Spec.Sinks = nil }},
		{
			name: "an editor without a name", do: func(p pipe) { p.Status.EditedBy.Username = "" },
			path: "status.editedBy.username", says: "had the pipeline send more",
		},
		{name: "fewer than no objects", do: func(p pipe) { p.Status.Objects = -1 }, path: "status.objects", says: "greater than or equal to 0"},
		{name: "a run without an id", do: func(p pipe) { p.Status.LastRun.ID = "" }, path: "status.lastRun.id", says: "told from others"},
		{name: "a run of nothing", do: func(p pipe) { p.Status.CurrentRun.Scope = "" }, path: "status.currentRun.scope", says: `"All"`},
		{
			name: "a run that is nowhere", do: func(p pipe) { p.Status.CurrentRun.Phase = "Lost" },
			path: "status.currentRun.phase", says: `"Listing", "Sending", "Finished"`,
		},
		{
			name: "a run with less than nothing done", do: func(p pipe) { p.Status.CurrentRun.Sinks[0].Done = -1 },
			path: "status.currentRun.sinks[0].done", says: "greater than or equal to 0",
		},
		{
			name: "a sink twice in a run", do: func(p pipe) {
				p.Status.CurrentRun.Sinks = append(p.Status.CurrentRun.Sinks, p.Status.CurrentRun.Sinks[0])
			},
			path: "status.currentRun.sinks[1].name", says: "Duplicate",
		},
		{
			name: "a request twice", do: func(p pipe) { p.Status.PendingRequests[1].ID = "1" },
			path: "status.pendingRequests[1].id", says: "Duplicate",
		},
		{
			name: "a request without a user", do: func(p pipe) { p.Status.PendingRequests[1].Actor = "" },
			path: "status.pendingRequests[1].actor", says: "who made the request",
		},
		{
			name: "a request for nothing", do: func(p pipe) { p.Status.PendingRequests[1].Scope = "" },
			path: "status.pendingRequests[1].scope", says: `"All"`,
		},
		{
			name: "too many requests", do: func(p pipe) {
				for i := range 9 {
					p.Status.PendingRequests = append(p.Status.PendingRequests, configbutler.PendingPipelineRequest{
						ID: fmt.Sprintf("more-%d", i), Actor: "jane", Scope: configbutler.PipelineScopeAll,
					})
				}
			},
			path: "status.pendingRequests", says: "at most 10",
		},
		{name: "a sink without a name", do: func(p pipe) { p.Status.Sinks[1].Name = "" }, path: "status.sinks[1].name", says: "Required"},
		{name: "a sink twice", do: func(p pipe) { p.Status.Sinks[1].Name = "assistant" }, path: "status.sinks[1].name", says: "Duplicate"},
		{
			name: "fewer than no failures", do: func(p pipe) { p.Status.Sinks[1].Failures = -1 },
			path: "status.sinks[1].failures", says: "greater than or equal to 0",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, validation.ValidateSyncPipelineStatusUpdate(with(runningPipeline(), c.do), runningPipeline()))
		})
	}
}

// TestUsersInTheStatusOfAPipelineCannotBeForged checks that a client with the right to write the status cannot set
// another user as the author of the spec or of a request.
func TestUsersInTheStatusOfAPipelineCannotBeForged(t *testing.T) {
	for _, c := range []change[pipe]{
		{name: "everything else", do: func(p pipe) { p.Status.Objects, p.Status.CurrentRun = 301, nil }},
		{name: "a request taken out", do: func(p pipe) { p.Status.PendingRequests = p.Status.PendingRequests[1:] }},
		{
			name: "another editor", do: func(p pipe) { p.Status.EditedBy.Username = "admin" },
			path: "status.editedBy", says: "only the server writes it",
		},
		{name: "no editor", do: func(p pipe) { p.Status.EditedBy = nil }, path: "status.editedBy", says: "only the server writes it"},
		{
			name: "another author", do: func(p pipe) { p.Status.PendingRequests[1].Actor = "admin" },
			path: "status.pendingRequests[1]", says: "only the server adds entries",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, validation.ValidateSyncPipelineStatusRequest(with(runningPipeline(), c.do), runningPipeline()))
		})
	}
}
