// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/notification/observe"
)

var noon = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

// described returns a line for each finding, and for each prefix of keys that are unknown.
func described(found observe.Findings) string {
	var lines []string
	for _, f := range found.Found {
		n := f.Notification
		line := fmt.Sprintf("%s %s %s | %s | %s", n.Event, n.Severity, n.DedupeKey, n.Headline, n.Command)
		if f.Lasting {
			line = "lasting " + line
		}
		if n.Error != "" {
			line += " | error: " + n.Error
		}
		if n.Actor != "" {
			line += " | by " + n.Actor
		}
		lines = append(lines, line)
	}
	for _, prefix := range found.Unknown {
		lines = append(lines, "unknown "+prefix)
	}
	return strings.Join(lines, "\n")
}

func condition(kind string, status metav1.ConditionStatus, reason, text string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: text, LastTransitionTime: noon}
}

// environment returns teams/alice, for which a workload waits for a decision.
func environment(changes ...func(*v1alpha1.Environment)) *v1alpha1.Environment {
	e := &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "alice", UID: "e", Generation: 2}}
	e.Spec.CatalogRef = v1alpha1.ObjectReference{Namespace: "catalogs", Name: "shop"}
	e.Status = v1alpha1.EnvironmentStatus{
		ObservedGeneration: 2, LatestCatalogSync: "shop-2", LatestRevision: 2, AppliedCatalogSync: "shop-1", AppliedRevision: 1,
		ChangedWorkloadCount: 1,
		ChangedWorkloads:     []v1alpha1.WorkloadChange{{Kind: v1alpha1.WorkloadDeployment, Name: "web", ChangeType: v1alpha1.ChangeChanged}},
		Conditions: []metav1.Condition{
			condition(v1alpha1.ConditionCatalogUpToDate, metav1.ConditionFalse, v1alpha1.ReasonWorkloadsChanged, "web differs"),
		},
	}
	for _, change := range changes {
		change(e)
	}
	return e
}

func TestEnvironment(t *testing.T) {
	const unknown = "unknown e/Prompted\nunknown e/Failed"
	for name, tt := range map[string]struct {
		change func(*v1alpha1.Environment)
		want   string
	}{
		"a change waits": {
			func(*v1alpha1.Environment) {},
			"lasting Prompted Info e/Prompted/shop-2/ | Environment teams/alice: 1 workload changed | kubectl slipstream sync alice -n teams",
		},
		"in sync": {func(e *v1alpha1.Environment) {
			e.Status.ChangedWorkloadCount, e.Status.ChangedWorkloads, e.Status.AppliedRevision = 0, nil, 2
		}, ""},
		"it is synced automatically": {func(e *v1alpha1.Environment) {
			e.Spec.AutoSync = true
			e.Status.Conditions = append(e.Status.Conditions,
				condition(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonWindowClosed, "window opens 18:00"))
		}, ""},
		"dismissed": {
			func(e *v1alpha1.Environment) {
				e.Status.DismissedCatalogSync, e.Status.DismissedBy, e.Status.DismissedAt = "shop-2", "jane", &noon
			},
			"Dismissed Info e/Dismissed/shop-2 | Environment teams/alice: Dismissed: 1 workload changed | " +
				"kubectl slipstream undismiss alice -n teams | by jane",
		},
		"a sync is in progress": {func(e *v1alpha1.Environment) {
			e.Status.Conditions = append(e.Status.Conditions, condition(v1alpha1.ConditionSyncing, metav1.ConditionTrue, "Progressing", ""))
		}, unknown},
		"a comparison is in progress": {func(e *v1alpha1.Environment) { e.Status.Conditions[0].Reason = v1alpha1.ReasonProgressing }, unknown},
		"the spec has changed":        {func(e *v1alpha1.Environment) { e.Generation++ }, unknown},
		"a conflict is a record's": {func(e *v1alpha1.Environment) {
			e.Status.Conflicts = []v1alpha1.WorkloadConflict{{Kind: v1alpha1.WorkloadDeployment, Name: "web"}}
		}, ""},
		"stalled": {
			func(e *v1alpha1.Environment) {
				e.Status.Conditions = append(e.Status.Conditions,
					condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonTargetNotFound, "There is no namespace alice"))
			},
			"lasting Failed Error e/Failed/Stalled | Environment teams/alice: Stalled: There is no namespace alice | " +
				"kubectl slipstream status environment/alice -n teams | error: There is no namespace alice",
		},
		"being deleted": {func(e *v1alpha1.Environment) { e.DeletionTimestamp = &noon }, "unknown e/"},
		"never synced":  {func(e *v1alpha1.Environment) { e.Status.AppliedRevision = 0 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := described(observe.Environment(environment(tt.change), observe.Offered{})); got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

// TestOffered checks that a prompt names the authors and commits of the catalog's record, and where these come from.
func TestOffered(t *testing.T) {
	offered := record(v1alpha1.SyncStateAutoApplied)
	offered.Namespace = "catalogs"
	f := observe.Environment(environment(), observe.Offered{Catalog: offered}).Found[0]
	n := f.Notification
	if f.SourceNamespace != "catalogs" || len(n.ChangedBy) != 1 || n.ChangedBy[0].Name != "jane" || len(n.Commits) != 1 || !n.Time.Equal(noon.Time) {
		t.Errorf("%+v", f)
	}
}

// record returns a record of teams/alice.
func record(state v1alpha1.SyncState, changes ...func(*v1alpha1.SyncRecord)) *v1alpha1.SyncStatus {
	r := &v1alpha1.SyncStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "alice-1", UID: "r"},
		Spec: v1alpha1.SyncStatusSpec{
			Type: v1alpha1.SyncTypeEnvironment, Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectEnvironment, Name: "alice", UID: "e"},
		},
		Status: v1alpha1.SyncRecord{
			State: state, DetectedAt: noon, Attempts: 3, Actor: "dana",
			ChangedBy: []v1alpha1.SourceAuthor{{Username: "jane", Signal: v1alpha1.SignalAudit}},
			Commits:   []v1alpha1.MirroredCommit{{CommitSummary: v1alpha1.CommitSummary{SHA: "4f2c"}}},
		},
	}
	for _, change := range changes {
		change(&r.Status)
	}
	return r
}

func TestRecord(t *testing.T) {
	failed := func(reason string) func(*v1alpha1.SyncRecord) {
		return func(r *v1alpha1.SyncRecord) {
			r.Error = &v1alpha1.SyncError{Reason: reason, Message: "forbidden", At: noon}
		}
	}
	const tried = "lasting Failed Warning r/Failed | Environment teams/alice: Sync failed, and is tried again | " +
		"kubectl slipstream retry alice-1 -n teams | error: forbidden | by dana"
	for name, tt := range map[string]struct {
		record *v1alpha1.SyncStatus
		want   string
	}{
		"completed": {
			record(v1alpha1.SyncStateCompleted, func(r *v1alpha1.SyncRecord) { r.Revision = 42 }),
			"Completed Info r/Completed | Environment teams/alice: Synced to revision 42 | kubectl get syncstatus alice-1 -n teams | by dana",
		},
		"dismissed": {
			record(v1alpha1.SyncStateDismissed, func(r *v1alpha1.SyncRecord) { r.ResolvedBy = "erin" }),
			"Dismissed Info r/Dismissed | Environment teams/alice: Dismissed by erin | kubectl get syncstatus alice-1 -n teams | by erin",
		},
		"failed":                       {record(v1alpha1.SyncStateFailed, failed("Forbidden")), tried},
		"tried again":                  {record(v1alpha1.SyncStateRetrying, failed("Forbidden")), tried},
		"tried again, and in progress": {record(v1alpha1.SyncStateInProgress, failed("Forbidden")), tried},
		"in progress":                  {record(v1alpha1.SyncStateInProgress), ""},
		"given up": {
			record(v1alpha1.SyncStateManualIntervention, failed("Forbidden")),
			"lasting Failed Error r/Failed | Environment teams/alice: Sync failed and needs a decision | " +
				"kubectl slipstream retry alice-1 -n teams | error: forbidden | by dana",
		},
		"in conflict": {
			record(v1alpha1.SyncStateConflicted, failed(v1alpha1.ReasonFieldsChangedTwice)),
			"lasting Conflicted Warning r/Conflicted | Environment teams/alice: Conflict: fields were changed here and in the catalog | " +
				"kubectl slipstream resolve alice -n teams | error: forbidden | by dana",
		},
		"a conflict is being resolved": {
			record(v1alpha1.SyncStateInProgress, failed(v1alpha1.ReasonFieldsChangedTwice)), "unknown r/Conflicted",
		},
		"waiting":    {record(v1alpha1.SyncStatePending), ""},
		"superseded": {record(v1alpha1.SyncStateSuperseded), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := described(observe.Record(tt.record, nil)); got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

// TestConflictNamesFields checks that a conflict names its workloads and fields.
func TestConflictNamesFields(t *testing.T) {
	e := environment()
	conflict := v1alpha1.WorkloadConflict{Kind: v1alpha1.WorkloadDeployment, Name: "web"}
	for i := range message.MaxFields + 3 {
		conflict.Fields = append(conflict.Fields, v1alpha1.FieldConflict{Field: fmt.Sprintf("/spec/%d", i)})
	}
	e.Status.Conflicts = []v1alpha1.WorkloadConflict{conflict}
	n := observe.Record(record(v1alpha1.SyncStateConflicted), e).Found[0].Notification
	if len(n.Fields) != message.MaxFields || n.MoreFields != 3 || n.Fields[0].Path != "/spec/0" || len(n.Names) != 1 || n.Names[0] != "web" {
		t.Errorf("%+v", n)
	}
}

func TestConditions(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{condition(v1alpha1.ConditionReady, status, reason, "why")}
	}
	destination := func(conditions ...metav1.Condition) observe.Findings {
		d := &v1alpha1.GitDestination{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "main", UID: "d"}}
		d.Status.Conditions = conditions
		for _, good := range []metav1.Condition{
			condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, ""),
			condition(v1alpha1.ConditionOwnershipConflict, metav1.ConditionFalse, v1alpha1.ReasonOwned, ""),
			condition(v1alpha1.ConditionSecretsEncrypted, metav1.ConditionTrue, v1alpha1.ReasonKeyGenerated, ""),
		} {
			if meta.FindStatusCondition(conditions, good.Type) == nil {
				d.Status.Conditions = append(d.Status.Conditions, good)
			}
		}
		return observe.Destination(d)
	}
	catalog := func(conditions []metav1.Condition) observe.Findings {
		c := &v1alpha1.AppCatalog{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "shop", UID: "c"}}
		c.Status.Conditions = conditions
		return observe.Catalog(c)
	}
	pipeline := func(conditions []metav1.Condition) observe.Findings {
		p := &v1alpha1.SyncPipeline{ObjectMeta: metav1.ObjectMeta{Name: "search", UID: "p"}}
		p.Status.Conditions = conditions
		return observe.Pipeline(p)
	}
	const failing = "lasting DestinationFailing Error d/DestinationFailing/Ready | GitDestination shop/main: Cannot write to Git | " +
		"kubectl describe gitdestination main -n shop | error: why"
	isFalse, isTrue := metav1.ConditionFalse, metav1.ConditionTrue
	for name, tt := range map[string]struct {
		found observe.Findings
		want  string
	}{
		"a destination is ready":       {destination(ready(isTrue, v1alpha1.ReasonSucceeded)...), ""},
		"a destination fails":          {destination(ready(isFalse, v1alpha1.ReasonPushFailed)...), failing},
		"a destination is suspended":   {destination(ready(isFalse, v1alpha1.ReasonSuspended)...), "unknown d/DestinationFailing/Ready"},
		"a destination is tried again": {destination(ready(isFalse, v1alpha1.ReasonProgressing)...), "unknown d/DestinationFailing/Ready"},
		"the folder is another's": {
			destination(condition(v1alpha1.ConditionOwnershipConflict, isTrue, v1alpha1.ReasonOwnedByAnother, "staging owns it")),
			"lasting OwnershipConflict Error d/OwnershipConflict/OwnershipConflict | GitDestination shop/main: The folder has another owner | " +
				"kubectl describe gitdestination main -n shop | error: staging owns it",
		},
		"Secrets cannot be encrypted": {
			destination(condition(v1alpha1.ConditionSecretsEncrypted, isFalse, v1alpha1.ReasonKeyUnavailable, "no key")),
			"lasting DestinationFailing Error d/DestinationFailing/SecretsEncrypted | GitDestination shop/main: Secrets are not written | " +
				"kubectl describe gitdestination main -n shop | error: no key",
		},
		"Secrets are left out": {
			destination(condition(v1alpha1.ConditionSecretsEncrypted, isFalse, v1alpha1.ReasonSecretsOmitted, "by the spec")),
			"unknown d/DestinationFailing/SecretsEncrypted",
		},
		"a catalog fails": {
			catalog(ready(isFalse, v1alpha1.ReasonSourceNotFound)),
			"lasting CatalogFailing Error c/CatalogFailing/Ready | AppCatalog teams/shop: Cannot follow its source | " +
				"kubectl describe appcatalog shop -n teams | error: why",
		},
		"a catalog is new": {catalog(ready(metav1.ConditionUnknown, v1alpha1.ReasonProgressing)), "unknown c/CatalogFailing/Ready"},
		"a pipeline fails": {
			pipeline(ready(isFalse, v1alpha1.ReasonDeliveryFailed)),
			"lasting PipelineFailing Error p/PipelineFailing/Ready | SyncPipeline search: Cannot watch or send | " +
				"kubectl describe syncpipeline search | error: why",
		},
		"pipelines are suspended": {pipeline(ready(isFalse, v1alpha1.ReasonPipelinesSuspended)), "unknown p/PipelineFailing/Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := described(tt.found); got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

func TestChange(t *testing.T) {
	change := &v1alpha1.Change{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "1-2", UID: "c"}, Spec: v1alpha1.ChangeSpec{
		Object:    v1alpha1.ChangedObject{APIVersion: "apps/v1", Kind: "Deployment", Resource: "deployments", Namespace: "shop", Name: "web"},
		Operation: v1alpha1.ChangeUpdate, Time: metav1.NewMicroTime(noon.Time), FieldManager: "helm", MoreFields: 2, Reason: "load\nis high",
		Fields: []string{"/spec/replicas"},
	}}
	n := observe.Change(change)
	if n.Event != v1alpha1.NotifyChange || n.Headline != "Deployment shop/web: Updated by helm" || n.Reason != "load is high" || n.MoreFields != 2 ||
		len(n.Fields) != 1 || n.ChangedBy[0].Signal != string(v1alpha1.SignalManagedFields) || n.Command != "kubectl slipstream show 1-2 -n shop" {
		t.Errorf("%+v", n)
	}
	change.Spec.Author = &v1alpha1.ChangeAuthor{Username: "jane", Signal: string(v1alpha1.SignalAudit)}
	change.Spec.Bypass, change.Spec.ManagedBy = true, &v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByHelm, Namespace: "shop", Name: "web"}
	n = observe.Change(change)
	if n.Event != v1alpha1.NotifyBypass || n.Severity != v1alpha1.SeverityWarning ||
		n.Headline != "Deployment shop/web: Updated by jane, bypassing Helm shop/web" {
		t.Errorf("%+v", n)
	}
	change.Spec = v1alpha1.ChangeSpec{
		Object:    v1alpha1.ChangedObject{APIVersion: "v1", Resource: "configmaps", Namespace: "shop", Name: "hours"},
		Operation: v1alpha1.ChangeCompared, Commits: []v1alpha1.ChangeCommit{{SHA: "4f2c", BlobBefore: "a"}},
	}
	if n = observe.Change(change); n.Headline != "configmaps shop/hours: Found deleted" {
		t.Errorf("%+v", n)
	}
}
