// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/environment/condition"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// usual are the conditions of an environment that is up to date.
var usual = map[string]string{
	v1alpha1.ConditionReady: "True Succeeded", v1alpha1.ConditionCatalogUpToDate: "True UpToDate",
	v1alpha1.ConditionDependenciesUpToDate: "True UpToDate", v1alpha1.ConditionSyncing: "False NotSyncing",
	v1alpha1.ConditionConflicted: "False NoConflicts", v1alpha1.ConditionHeld: "False NotHeld",
	v1alpha1.ConditionObjectsMissing: "False NothingMissing",
}

func synced() *v1alpha1.Environment {
	return &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Name: "alice", Generation: 3},
		Status: v1alpha1.EnvironmentStatus{
			ObservedGeneration: 3, AppliedRevision: 41, LatestRevision: 41, LatestCatalogSync: "shop-bcdfg",
			WorkloadsReady: &v1alpha1.WorkloadsReady{Ready: 3, Total: 3},
		},
	}
}

func changed(e *v1alpha1.Environment) {
	e.Status.LatestRevision, e.Status.ChangedWorkloadCount = 42, 2
	e.Status.ChangedWorkloads = []v1alpha1.WorkloadChange{
		{Kind: "Deployment", Name: "web", ChangeType: v1alpha1.ChangeChanged},
		{Kind: "CronJob", Name: "report", ChangeType: v1alpha1.ChangeAdded},
	}
}

func pinned(to int64) func(*v1alpha1.Environment) {
	return func(e *v1alpha1.Environment) { changed(e); e.Spec.PinnedRevision = &to }
}

func failed(e *v1alpha1.Environment) {
	e.Status.LastError = &v1alpha1.SyncError{Reason: "SourceMissing", Message: "it does not exist"}
}

func conflicts(e *v1alpha1.Environment) {
	e.Status.Conflicts = []v1alpha1.WorkloadConflict{
		{Kind: "Deployment", Name: "web", Fields: []v1alpha1.FieldConflict{{Field: "/spec/replicas"}}},
	}
}

// absent means that a condition does not exist.
const absent = ""

var unreadable = v1alpha1.NotCopiedObject{Kind: "RoleBinding", Name: "*", Reason: v1alpha1.NotCopiedUnreadable}

func lacking(objects ...v1alpha1.NotCopiedObject) func(*v1alpha1.Environment) {
	return func(e *v1alpha1.Environment) { e.Status.NotCopied = objects }
}

func never(e *v1alpha1.Environment) {
	e.Status = v1alpha1.EnvironmentStatus{ObservedGeneration: 3, LatestRevision: 41, ChangedWorkloadCount: 3}
}

func deleted(e *v1alpha1.Environment) { e.DeletionTimestamp = &metav1.Time{Time: noon} }

func why(reason string) conditions.Reason {
	return conditions.Reason{Code: reason, Message: "a sentence"}
}

// TestSet checks the conditions that differ from usual, by type, and the columns STATE and WAITS-FOR.
func TestSet(t *testing.T) {
	const (
		ready, catalog, dependencies = v1alpha1.ConditionReady, v1alpha1.ConditionCatalogUpToDate, v1alpha1.ConditionDependenciesUpToDate
		reconciling, stalled         = v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled
	)
	type deviations map[string]string
	for name, tt := range map[string]struct {
		do    func(*v1alpha1.Environment)
		facts condition.Facts
		want  deviations
		state string
		waits string
	}{
		"up to date": {state: "Synced"},
		"something is not copied": {
			do:   lacking(v1alpha1.NotCopiedObject{Kind: "Role", Name: "web", Reason: v1alpha1.NotCopiedGrantsRights}, unreadable),
			want: deviations{v1alpha1.ConditionObjectsMissing: "True NotCopied"}, state: "Synced",
		},
		"objects that are not copied are unknown": {
			do: lacking(unreadable), want: deviations{v1alpha1.ConditionObjectsMissing: "Unknown Unreadable"}, state: "Synced",
		},
		"a prompt": {do: changed, want: deviations{catalog: "False WorkloadsChanged"}, state: "2 workloads changed", waits: "you"},
		"a dismissed prompt": {
			do:   func(e *v1alpha1.Environment) { changed(e); e.Status.DismissedCatalogSync = "shop-bcdfg" },
			want: deviations{catalog: "False Dismissed"}, state: "Dismissed: 2 workloads changed", waits: "newer change",
		},
		"a dismissed older prompt": {
			do:   func(e *v1alpha1.Environment) { changed(e); e.Status.DismissedCatalogSync = "shop-older" },
			want: deviations{catalog: "False WorkloadsChanged"}, state: "2 workloads changed", waits: "you",
		},
		"a revision that changes nothing here": {do: func(e *v1alpha1.Environment) { e.Status.LatestRevision = 42 }, state: "Synced"},
		"a revision that is compared": {
			do: func(e *v1alpha1.Environment) { e.Status.LatestRevision = 42 }, facts: condition.Facts{Unplanned: true},
			want: deviations{catalog: "Unknown Progressing", v1alpha1.ConditionObjectsMissing: absent}, state: "Comparing with the source", waits: "server",
		},
		"pinned": {do: pinned(41), want: deviations{catalog: "False Pinned"}, state: "2 workloads changed, pinned at r41", waits: "unpin"},
		"pinned to another revision": {
			do: pinned(40), want: deviations{catalog: "False Pinned", ready: "False Pinned", stalled: "True Pinned"},
			state: "Stalled: The environment holds revision 41, and spec.pinnedRevision is 40", waits: "unpin",
		},
		"changed dependencies": {
			do: func(e *v1alpha1.Environment) {
				e.Status.ChangedDependencies = []v1alpha1.DependencyCount{{Type: v1alpha1.CountedConfigMap, Count: 2}}
			},
			want: deviations{dependencies: "False DependenciesChanged"}, state: "2 ConfigMaps changed", waits: "you",
		},
		"dismissed changed dependencies": {
			do: func(e *v1alpha1.Environment) {
				e.Status.ChangedDependencies = []v1alpha1.DependencyCount{{Type: v1alpha1.CountedConfigMap, Count: 2}}
				e.Status.DismissedDependencySync = "alice-bcdfg"
			},
			want: deviations{dependencies: "False Dismissed"}, state: "Dismissed: 2 ConfigMaps changed", waits: "newer change",
		},
		"both dismissed": {
			do: func(e *v1alpha1.Environment) {
				changed(e)
				e.Status.ChangedDependencies = []v1alpha1.DependencyCount{{Type: v1alpha1.CountedConfigMap, Count: 2}}
				e.Status.DismissedDependencySync, e.Status.DismissedCatalogSync = "alice-bcdfg", "shop-bcdfg"
			},
			want:  deviations{catalog: "False Dismissed", dependencies: "False Dismissed"},
			state: "Dismissed: 2 workloads, 2 ConfigMaps changed", waits: "newer change",
		},
		"dismissed, and changed since": {
			do: func(e *v1alpha1.Environment) {
				changed(e)
				e.Status.ChangedDependencies = []v1alpha1.DependencyCount{{Type: v1alpha1.CountedConfigMap, Count: 2}}
				e.Status.DismissedCatalogSync, e.Status.LatestDependencySync = "shop-bcdfg", "alice-fghjk"
			},
			want: deviations{catalog: "False Dismissed", dependencies: "False DependenciesChanged"}, state: "2 ConfigMaps changed", waits: "you",
		},
		"an autoscaler": {
			do: func(e *v1alpha1.Environment) {
				e.Status.ChangedDependencies = []v1alpha1.DependencyCount{{Type: v1alpha1.CountedAutoscaler, Count: 1}}
			},
			want: deviations{dependencies: "False DependenciesChanged"}, state: "1 HorizontalPodAutoscaler changed", waits: "you",
		},
		"a dismissed autoscaler": {
			do: func(e *v1alpha1.Environment) {
				e.Status.ChangedDependencies = []v1alpha1.DependencyCount{{Type: v1alpha1.CountedAutoscaler, Count: 1}}
				e.Status.DismissedCatalogSync = "shop-bcdfg"
			},
			want: deviations{dependencies: "False Dismissed"}, state: "Dismissed: 1 HorizontalPodAutoscaler changed", waits: "newer change",
		},
		"pinned to what it holds, and changed in the source": {
			do: func(e *v1alpha1.Environment) {
				pinned(41)(e)
				e.Status.ChangedWorkloadCount, e.Status.ChangedWorkloads, e.Status.LatestDependencySync = 0, nil, "alice-fghjk"
			},
			want: deviations{catalog: "False Pinned", dependencies: "False Pinned"}, state: "Synced, pinned at r41", waits: "unpin",
		},
		"a missing one": {
			facts: condition.Facts{Missing: []string{"ConfigMap app-config"}},
			want:  deviations{dependencies: "False DependenciesMissing"}, state: "Synced", waits: "source",
		},
		"withheld": {
			facts: condition.Facts{Denied: why("PermissionLost"), Missing: []string{"ConfigMap app-config"}},
			want:  deviations{dependencies: "False PermissionLost"}, state: "a sentence", waits: "permission",
		},
		"withheld, and new": {
			do: never, facts: condition.Facts{Denied: why("PermissionLost")},
			want:  deviations{ready: "False NeverSynced", catalog: "False NeverSynced", dependencies: "False PermissionLost"},
			state: "a sentence", waits: "permission",
		},
		"new": {
			do: never, want: deviations{ready: "False NeverSynced", catalog: "False NeverSynced", dependencies: "False NeverSynced"},
			state: "Not synced yet", waits: "you",
		},
		"new, and about to be synced": {
			do: func(e *v1alpha1.Environment) { never(e); e.Status.ActiveSyncs = []string{"alice-bcdfg"} },
			want: deviations{
				ready: "False Progressing", reconciling: "True Progressing", catalog: "False NeverSynced", dependencies: "False NeverSynced",
			},
			state: "Not synced yet", waits: "sync",
		},
		"new, of a catalog that is new": {
			do: never, facts: condition.Facts{Obstacle: why(v1alpha1.ReasonCatalogNotReady)},
			want: deviations{
				ready: "False CatalogNotReady", reconciling: "True CatalogNotReady", catalog: "Unknown CatalogNotReady",
				dependencies: "False NeverSynced",
			},
			state: "Not synced yet", waits: "catalog",
		},
		"without a catalog": {
			facts: condition.Facts{Obstacle: why(v1alpha1.ReasonCatalogNotFound)},
			want:  deviations{ready: "False CatalogNotFound", stalled: "True CatalogNotFound", catalog: "Unknown CatalogNotFound"},
			state: "Stalled: a sentence", waits: "catalog",
		},
		"syncing": {
			do: changed, facts: condition.Facts{Running: &v1alpha1.SyncStatus{ObjectMeta: metav1.ObjectMeta{Name: "alice-bcdfg"}}},
			want: deviations{
				ready: "False Progressing", reconciling: "True Progressing", v1alpha1.ConditionSyncing: "True Progressing",
				catalog: "False WorkloadsChanged",
			},
			state: "Syncing", waits: "sync",
		},
		"conflicted": {
			do: conflicts, want: deviations{
				ready: "False FieldsChangedTwice", stalled: "True FieldsChangedTwice", catalog: "False FieldsChangedTwice",
				v1alpha1.ConditionConflicted: "True FieldsChangedTwice",
			},
			state: "Conflict: 1 field", waits: "you",
		},
		"failed": {
			do: failed, want: deviations{ready: "False SyncFailed", reconciling: "True SyncFailed"}, state: "Failed: it does not exist", waits: "retry",
		},
		"failed too often": {
			do: failed, facts: condition.Facts{GivenUp: true}, want: deviations{ready: "False SyncFailed", stalled: "True SyncFailed"},
			state: "Failed: it does not exist", waits: "you",
		},
		"failed, and without a target since": {
			do: failed, facts: condition.Facts{GivenUp: true, Obstacle: why(v1alpha1.ReasonTargetNotFound)},
			want: deviations{ready: "False TargetNotFound", stalled: "True TargetNotFound"}, state: "Stalled: a sentence", waits: "you",
		},
		"held": {
			do:    func(e *v1alpha1.Environment) { changed(e); e.Status.ActiveSyncs = []string{"alice-bcdfg"} },
			facts: condition.Facts{Held: why(v1alpha1.ReasonWindowClosed)},
			want:  deviations{catalog: "False WorkloadsChanged", v1alpha1.ConditionHeld: "True WindowClosed"}, state: "Held: a sentence", waits: "window",
		},
		"new and held": {
			do: never, facts: condition.Facts{Held: why(v1alpha1.ReasonRateLimited)},
			want: deviations{
				ready: "False NeverSynced", v1alpha1.ConditionHeld: "True RateLimited", catalog: "False NeverSynced",
				dependencies: "False NeverSynced",
			},
			state: "Held: a sentence", waits: "rate limit",
		},
		"held because of a permission": {
			facts: condition.Facts{Held: why(v1alpha1.ReasonPermissionLost)},
			want: deviations{
				ready: "False PermissionLost", stalled: "True PermissionLost", v1alpha1.ConditionHeld: "True PermissionLost",
			},
			state: "Stalled: a sentence", waits: "permission",
		},
		"not running": {
			do:    func(e *v1alpha1.Environment) { e.Status.WorkloadsReady.Ready = 1 },
			facts: condition.Facts{NotReady: []string{"Deployment web: 0 of 1 Pods ready"}},
			want:  deviations{ready: "False WorkloadsNotReady"}, state: "Synced, 2 of 3 workloads not ready", waits: "workloads",
		},
		"not known to run": {
			do:    func(e *v1alpha1.Environment) { e.Status.WorkloadsReady = nil },
			facts: condition.Facts{NotReady: []string{"deployments cannot be watched"}},
			want:  deviations{ready: "False Progressing", reconciling: "True Progressing"}, state: "Synced", waits: "workloads",
		},
		"deleted": {do: deleted, want: deviations{ready: "False Progressing", reconciling: "True Progressing"}, state: "Deleting", waits: "deletion"},
		"expired": {
			do:   func(e *v1alpha1.Environment) { deleted(e); e.Status.ExpiresAt = &metav1.Time{Time: noon} },
			want: deviations{ready: "False Expired", reconciling: "True Expired"}, state: "Deleting", waits: "deletion",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := synced()
			if tt.do != nil {
				tt.do(e)
			}
			condition.Set(e, tt.facts, noon)
			want := maps.Clone(usual)
			maps.Copy(want, tt.want)
			maps.DeleteFunc(want, func(_, is string) bool { return is == absent })
			if diff := cmp.Diff(want, reported(t, e)); diff != "" {
				t.Errorf("wrong conditions (-want +got):\n%s", diff)
			}
			if got := summary.Environment(e); got != tt.state {
				t.Errorf("STATE = %q", got)
			}
			if got := summary.WaitsFor(e); got != tt.waits {
				t.Errorf("WAITS-FOR = %q", got)
			}
		})
	}
}

// reported returns the conditions of an environment, by type. Each must have the observed generation, a reason and a message.
func reported(t *testing.T, e *v1alpha1.Environment) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range e.Status.Conditions {
		out[c.Type] = string(c.Status) + " " + c.Reason
		if c.ObservedGeneration != 3 || c.LastTransitionTime.IsZero() || c.Message == "" || c.Reason == "" {
			t.Errorf("incomplete condition %+v", c)
		}
	}
	return out
}

// TestObstacles checks that an environment is stalled by every obstacle except a new catalog.
func TestObstacles(t *testing.T) {
	for _, reason := range []string{
		v1alpha1.ReasonCatalogNotFound, v1alpha1.ReasonBaseNotFound, v1alpha1.ReasonTargetNotFound, v1alpha1.ReasonTargetIsSource,
		v1alpha1.ReasonTargetTaken, v1alpha1.ReasonRevisionNotKept, v1alpha1.ReasonAccessNotGranted,
	} {
		e := synced()
		condition.Set(e, condition.Facts{Obstacle: why(reason)}, noon)
		if c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionStalled); c == nil || c.Reason != reason {
			t.Errorf("%s: %+v", reason, c)
		}
	}
}

// TestSetAgain checks that solved problems are removed, and that unchanged conditions keep their time.
func TestSetAgain(t *testing.T) {
	e := synced()
	failed(e)
	condition.Set(e, condition.Facts{GivenUp: true}, noon)
	e.Status.LastError = nil
	condition.Set(e, condition.Facts{}, noon.Add(time.Hour))
	if diff := cmp.Diff(usual, reported(t, e)); diff != "" {
		t.Errorf("wrong conditions (-want +got):\n%s", diff)
	}
	at := func(kind string) time.Time {
		return meta.FindStatusCondition(e.Status.Conditions, kind).LastTransitionTime.UTC()
	}
	if got := []time.Time{at(v1alpha1.ConditionReady), at(v1alpha1.ConditionHeld)}; !slices.Equal(
		got, []time.Time{noon.Add(time.Hour), noon}) {
		t.Errorf("transition time = %v", got)
	}
}

func TestMessages(t *testing.T) {
	e := synced()
	changed(e)
	conflicts(e)
	e.Status.WorkloadsReady.Ready = 1
	facts := condition.Facts{NotReady: []string{"Deployment web: 0 of 1 Pods ready"}}
	for _, step := range []struct {
		do   func(*v1alpha1.Environment)
		kind string
		want string
	}{
		{
			kind: v1alpha1.ConditionConflicted,
			want: "1 field changed here and in the catalog, until the subresource resolve says what to do, of Deployment web",
		},
		{
			do: func(e *v1alpha1.Environment) { e.Status.Conflicts = nil }, kind: v1alpha1.ConditionCatalogUpToDate,
			want: "Revision 42 of the catalog changes 2 workloads: CronJob report, Deployment web",
		},
		{
			do: func(e *v1alpha1.Environment) { e.Status.ChangedWorkloads[0].Name = "we\u202eb" }, kind: v1alpha1.ConditionCatalogUpToDate,
			want: `Revision 42 of the catalog changes 2 workloads: CronJob report, Deployment we\u202eb`,
		},
		{kind: v1alpha1.ConditionReady, want: "2 of 3 workloads not ready: Deployment web: 0 of 1 Pods ready"},
	} {
		if step.do != nil {
			step.do(e)
		}
		condition.Set(e, facts, noon)
		if got := meta.FindStatusCondition(e.Status.Conditions, step.kind).Message; got != step.want {
			t.Errorf("message of %s = %q", step.kind, got)
		}
	}
}
