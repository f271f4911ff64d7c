// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

func syncStatus() *configbutler.SyncStatus {
	name := syncstatus.Names(v1alpha1.SyncStatusSpec{
		Type: v1alpha1.SyncTypeCatalog, Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectAppCatalog, Name: "shop", UID: "1234"}, Batch: "b1",
	})[0]
	return &configbutler.SyncStatus{
		ObjectMeta: meta(name),
		Spec: configbutler.SyncStatusSpec{
			Type: configbutler.SyncTypeCatalog, Batch: "b1",
			Subject: configbutler.SyncSubject{Kind: configbutler.SubjectAppCatalog, Name: "shop", UID: "1234"},
		},
		Status: configbutler.SyncRecord{
			State: configbutler.SyncStateAutoApplied, AutoTriggered: true, DetectedAt: metav1.Unix(1, 0), Revision: 3,
			ChangedBy: []configbutler.SourceAuthor{{Username: "jane", Signal: configbutler.SignalAudit, Workloads: 2}},
			Commits: []configbutler.MirroredCommit{{
				CommitSummary:  configbutler.CommitSummary{SHA: "4f2c9e1"},
				DestinationRef: configbutler.NamespacedObjectReference{Namespace: "team-a", Name: "destination"},
			}},
			WorkloadCount: 2, WorkloadNames: []string{"api", "worker"},
			ResourceSummaries: []configbutler.ResourceSummary{
				{Type: "Deployment", Namespace: "production", Name: "api", ChangeType: configbutler.ChangeChanged},
				{Type: "CronJob", Namespace: "production", Name: "api", ChangeType: configbutler.ChangeRemoved},
			},
			Progress: &configbutler.Progress{Done: 2, Total: 2},
		},
	}
}

func TestSyncStatus(t *testing.T) {
	type rec = *configbutler.SyncStatus
	checkChanges(t, syncStatus, validation.ValidateSyncStatus, validation.ValidateSyncStatusUpdate, []change[rec]{
		{name: "little is known", do: func(r rec) {
			r.Status = configbutler.SyncRecord{State: r.Status.State, AutoTriggered: true, DetectedAt: r.Status.DetectedAt}
		}},
		{
			name: "by itself, at a user's word", do: func(r rec) { r.Status.AutoTriggered = false },
			path: "status.autoTriggered", says: "when there is no actor",
		},
		{
			name: "never seen", do: func(r rec) { r.Status.DetectedAt = metav1.Time{} },
			path: "status.detectedAt", says: "the time of the first change",
		},
		{name: "a run that failed in part", do: func(r rec) {
			r.Status.Failures, r.Status.Warnings, r.Status.FromRevision = failures(v1alpha1.MaxFailures), make([]string, v1alpha1.MaxFailures), 41
		}},
		{
			name: "too many failures", do: func(r rec) { r.Status.Failures = failures(v1alpha1.MaxFailures + 1) },
			path: "status.failures", says: "at most 100",
		},
		{
			name: "a failure twice", do: func(r rec) { r.Status.Failures = slices.Concat(failures(1), failures(1)) },
			path: "status.failures[1]", says: "ConfigMap production/x0",
		},
		{
			name: "a failure without a reason", do: func(r rec) { r.Status.Failures = failures(1); r.Status.Failures[0].Reason = "" },
			path: "status.failures[0]", says: "a reason and a message",
		},
		{
			name: "a failure that is a story", do: func(r rec) {
				r.Status.Failures = failures(1)
				r.Status.Failures[0].Message = strings.Repeat("a", v1alpha1.MaxFailureBytes+1)
			},
			path: "status.failures[0].message", says: "512 bytes",
		},
		{
			name: "too many warnings", do: func(r rec) { r.Status.Warnings = make([]string, v1alpha1.MaxFailures+1) },
			path: "status.warnings", says: "at most 100",
		},
		{
			name: "from a negative revision", do: func(r rec) { r.Status.FromRevision = -1 },
			path: "status.fromRevision", says: "greater than or equal to 0",
		},
		{
			name: "an unknown action", do: func(r rec) { r.Status.Action = "Some" },
			path: "status.action", says: `"Catalog", "Cluster", "All"`,
		},
		{
			name: "a negative revision", do: func(r rec) { r.Status.Revision = -1 },
			path: "status.revision", says: "greater than or equal to 0",
		},
		{
			name: "negative attempts", do: func(r rec) { r.Status.Attempts = -1 },
			path: "status.attempts", says: "greater than or equal to 0",
		},
		{
			name: "a negative count", do: func(r rec) { r.Status.WorkloadCount = -1 },
			path: "status.workloadCount", says: "greater than or equal to 0",
		},
		{
			name: "too many names", do: func(r rec) { r.Status.WorkloadNames = make([]string, syncstatus.MaxListed+1) },
			path: "status.workloadNames", says: "at most 1000",
		},
		{
			name: "too many objects", do: func(r rec) {
				one := r.Status.ResourceSummaries[0]
				for i := range syncstatus.MaxListed - 1 {
					one.Name = fmt.Sprint("x", i)
					r.Status.ResourceSummaries = append(r.Status.ResourceSummaries, one)
				}
			},
			path: "status.resourceSummaries", says: "at most 1000",
		},
		{
			name: "too many commits", do: func(r rec) {
				for range syncstatus.MaxCommits {
					r.Status.Commits = append(r.Status.Commits, r.Status.Commits[0])
				}
			},
			path: "status.commits", says: "at most 100",
		},
		{
			name: "an object twice", do: func(r rec) {
				r.Status.ResourceSummaries[1] = r.Status.ResourceSummaries[0]
				r.Status.ResourceSummaries[1].ChangeType = configbutler.ChangeAdded
			},
			path: "status.resourceSummaries[1]", says: "Deployment production/api",
		},
		{
			name: "an object without a type", do: func(r rec) { r.Status.ResourceSummaries[0].Type = "deployments" },
			path: "status.resourceSummaries[0].type", says: "such as ConfigMap",
		},
		{
			name: "an object without a name", do: func(r rec) { r.Status.ResourceSummaries[0].Name = "" },
			path: "status.resourceSummaries[0].name", says: "Required",
		},
		{
			name: "an unknown change", do: func(r rec) { r.Status.ResourceSummaries[0].ChangeType = "Moved" },
			path: "status.resourceSummaries[0].changeType", says: `"Added", "Changed", "Removed"`,
		},
		{
			name: "an author without a signal", do: func(r rec) { r.Status.ChangedBy[0].Signal = "" },
			path: "status.changedBy[0].signal", says: `"Audit", "Admission", "ManagedFields", "Unknown"`,
		},
		{
			name: "an author of less than nothing", do: func(r rec) { r.Status.ChangedBy[0].Workloads = -1 },
			path: "status.changedBy[0].workloads", says: "greater than or equal to 0",
		},
		{
			name: "a commit without a hash", do: func(r rec) { r.Status.Commits[0].SHA = "" },
			path: "status.commits[0].sha", says: "the hash of the commit",
		},
		{
			name: "a commit of nowhere", do: func(r rec) { r.Status.Commits[0].DestinationRef.Name = "" },
			path: "status.commits[0].destinationRef.name", says: "Required",
		},
		{
			name: "more done than there is", do: func(r rec) { r.Status.Progress.Done = 3 },
			path: "status.progress.done", says: "at most 2",
		},
	})
}

func TestNewSyncStatus(t *testing.T) {
	type rec = *configbutler.SyncStatus
	tests := []change[rec]{
		{name: "another choice of a name", do: func(r rec) {
			r.Name = syncstatus.Names(v1alpha1.SyncStatusSpec{
				Type: v1alpha1.SyncTypeCatalog, Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectAppCatalog, Name: "shop", UID: "1234"}, Batch: "b1",
			})[3]
		}},
		{name: "a name of one's own", do: func(r rec) { r.Name = "shop-bbbbb" }, path: "metadata.name", says: `supported values: "shop-`},
		{
			name: "no type", do: func(r rec) { r.Spec.Type, r.Spec.Subject.Kind = "", "Environment" },
			path: "spec.type", says: `"Catalog", "Environment", "Dependency"`,
		},
		{
			name: "a subject of another kind", do: func(r rec) { r.Spec.Subject.Kind = "Environment" },
			path: "spec.subject.kind", says: `"AppCatalog"`,
		},
		{name: "no subject", do: func(r rec) { r.Spec.Subject.Name = "" }, path: "spec.subject.name", says: "Required"},
		{name: "a subject without a uid", do: func(r rec) { r.Spec.Subject.UID = "" }, path: "spec.subject.uid", says: "same name"},
		{name: "no batch", do: func(r rec) { r.Spec.Batch = "" }, path: "spec.batch", says: "told from others"},
		{
			name: "a subject whose name is no label", do: func(r rec) { r.Spec.Subject.Name = strings.Repeat("a", 64) },
			path: "spec.subject.name", says: "63",
		},
		{
			name: "a beginning in the middle", do: func(r rec) { r.Status.State = configbutler.SyncStateRetrying },
			path: "status.state", says: `"Applied", "AutoApplied", "Failed"`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			record := syncStatus()
			test.do(record)
			test.check(t, validation.ValidateSyncStatus(record))
		})
	}
}

// What one part of the server has read and another has moved since is not taken back.
func TestSyncStatusUpdate(t *testing.T) {
	type rec = *configbutler.SyncStatus
	failed := func() *configbutler.SyncStatus {
		return with(syncStatus(), func(r rec) { r.Status.State, r.Status.Attempts = configbutler.SyncStateFailed, 2 })
	}
	tests := []change[rec]{
		{name: "another attempt", do: func(r rec) { r.Status.State = configbutler.SyncStateRetrying }},
		{name: "more of it", do: func(r rec) { r.Status.WorkloadCount, r.Status.Error = 3, &configbutler.SyncError{Reason: "Timeout"} }},
		{
			name: "an attempt left out", do: func(r rec) { r.Status.State = configbutler.SyncStateAutoApplied },
			path: "status.state", says: "only ManualIntervention or Retrying",
		},
		{
			name: "a state of another type", do: func(r rec) { r.Status.State = configbutler.SyncStatePending },
			path: "status.state", says: "cannot become Pending",
		},
		{
			name: "an attempt taken back", do: func(r rec) { r.Status.Attempts = 1 },
			path: "status.attempts", says: "it was 2",
		},
		{name: "another batch", do: func(r rec) { r.Spec.Batch = "b2" }, path: "spec", says: "immutable"},
		{
			name: "another actor", do: func(r rec) { r.Status.Actor, r.Status.AutoTriggered = "joe", false },
			path: "status.actor", says: "immutable",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			record := failed()
			test.do(record)
			test.check(t, validation.ValidateSyncStatusUpdate(record, failed()))
		})
	}
}

// What the one door makes of a record is what the API takes.
func TestRecordsAsTheyAreMadeAreValid(t *testing.T) {
	at := time.Unix(1000, 5)
	first, err := syncstatus.New(syncstatus.Creation{
		Namespace: "team-a", DetectedAt: at, First: syncstatus.Step{To: v1alpha1.SyncStatePending, By: "jane", At: at},
		Spec: v1alpha1.SyncStatusSpec{
			Type:    v1alpha1.SyncTypeEnvironment,
			Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectEnvironment, Name: "alice", UID: "1"}, Batch: "b1",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	change[struct{}]{}.check(t, validation.ValidateSyncStatus(internal(t, first)))
	second, err := syncstatus.Move(first, syncstatus.Step{To: v1alpha1.SyncStateInProgress, At: at})
	if err != nil {
		t.Fatal(err)
	}
	first.ResourceVersion, second.ResourceVersion = "1", "1"
	change[struct{}]{}.check(t, validation.ValidateSyncStatusUpdate(internal(t, second), internal(t, first)))
}

// TestClaims checks that a record that waits becomes the request of the first user who asks for it, and of no other
// user.
func TestClaims(t *testing.T) {
	spec := v1alpha1.SyncStatusSpec{
		Type: v1alpha1.SyncTypeDependency, Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectEnvironment, Name: "alice", UID: "1"}, Batch: "b1",
	}
	waiting, err := syncstatus.New(syncstatus.Creation{
		Namespace: "team-a", DetectedAt: time.Unix(1000, 0), First: syncstatus.Step{To: v1alpha1.SyncStatePending}, Spec: spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	waiting.ResourceVersion = "1"
	claimed, err := syncstatus.Claim(waiting, "jane")
	if err != nil {
		t.Fatal(err)
	}
	change[struct{}]{}.check(t, validation.ValidateSyncStatusUpdate(internal(t, claimed), internal(t, waiting)))
	another := claimed.DeepCopy()
	another.Status.Actor = "joe"
	change[struct{}]{path: "status.actor", says: "immutable"}.check(t,
		validation.ValidateSyncStatusUpdate(internal(t, another), internal(t, claimed)))
}

func internal(t *testing.T, record *v1alpha1.SyncStatus) *configbutler.SyncStatus {
	t.Helper()
	out := &configbutler.SyncStatus{}
	if err := v1alpha1.Convert_v1alpha1_SyncStatus_To_configbutler_SyncStatus(record, out, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

func failures(count int) []configbutler.ObjectFailure {
	out := make([]configbutler.ObjectFailure, count)
	for i := range out {
		out[i] = configbutler.ObjectFailure{
			Type: "ConfigMap", Namespace: "production", Name: fmt.Sprint("x", i), Reason: "SourceMissing", Message: "does not exist",
		}
	}
	return out
}
