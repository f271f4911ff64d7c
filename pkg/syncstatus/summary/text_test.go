// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package summary_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

type envt = *v1alpha1.Environment

// environment returns an environment that has the workloads of its catalog.
func environment() envt {
	return &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Name: "alice", Generation: 3},
		Status: v1alpha1.EnvironmentStatus{
			ObservedGeneration: 3, AppliedRevision: 41, LatestRevision: 41, LatestCatalogSync: "shop-bcdfg",
		},
	}
}

func workloads(count int32) func(envt) {
	return func(e envt) { e.Status.LatestRevision, e.Status.ChangedWorkloadCount = 42, count }
}

func dependencies(e envt) {
	e.Status.LatestDependencySync = "alice-bcdfg"
	e.Status.ChangedDependencies = []v1alpha1.DependencyCount{
		{Type: v1alpha1.CountedSecret, Count: 1}, {Type: v1alpha1.CountedConfigMap, Count: 2},
	}
}

func condition(of, message string) func(envt) {
	return func(e envt) {
		e.Status.Conditions = append(e.Status.Conditions, metav1.Condition{Type: of, Status: metav1.ConditionTrue, Message: message})
	}
}

func failed(message string) func(envt) {
	return func(e envt) { e.Status.LastError = &v1alpha1.SyncError{Reason: "SyncFailed", Message: message} }
}

func conflicts(e envt) {
	e.Status.Conflicts = []v1alpha1.WorkloadConflict{
		{Name: "api", Fields: []v1alpha1.FieldConflict{{Field: "/spec/replicas"}, {Field: "/spec/paused"}}},
		{Name: "web", Fields: []v1alpha1.FieldConflict{{Field: "/spec/replicas"}}},
	}
}

func ready(ready, total int32) func(envt) {
	return func(e envt) { e.Status.WorkloadsReady = &v1alpha1.WorkloadsReady{Ready: ready, Total: total} }
}

func dismissed(record string) func(envt) {
	return func(e envt) { e.Status.DismissedCatalogSync = record }
}

func comparing(e envt) {
	e.Status.Conditions = append(e.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionCatalogUpToDate, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonProgressing,
	})
}

func pinned(e envt) { e.Spec.PinnedRevision = ptr.To(int64(40)) }

func TestEnvironment(t *testing.T) {
	held := condition(v1alpha1.ConditionHeld, "window nightly opens 18:00 CET")
	tests := []struct {
		want string
		with []func(envt)
	}{
		{"Synced", nil},
		{"Synced", []func(envt){ready(5, 5)}},
		{"Synced, 2 of 5 workloads not ready", []func(envt){ready(3, 5)}},
		{"Synced, 1 of 1 workload not ready", []func(envt){ready(0, 1)}},
		{"Synced, pinned at r40", []func(envt){pinned}},
		{"1 workload changed", []func(envt){workloads(1)}},
		{"3 workloads changed", []func(envt){workloads(3), ready(3, 5)}},
		{"3 workloads changed, pinned at r40", []func(envt){workloads(3), pinned}},
		{"2 ConfigMaps, 1 Secret changed", []func(envt){dependencies}},
		{"3 workloads, 2 ConfigMaps, 1 Secret changed", []func(envt){workloads(3), dependencies}},
		{"Dismissed: 3 workloads changed", []func(envt){workloads(3), dismissed("shop-bcdfg")}},
		{"3 workloads changed", []func(envt){workloads(3), dismissed("shop-older")}},
		{"2 ConfigMaps, 1 Secret changed", []func(envt){workloads(3), dismissed("shop-bcdfg"), dependencies}},
		{"Synced", []func(envt){dismissed("shop-bcdfg")}},
		{"Not synced yet", []func(envt){workloads(12), func(e envt) { e.Status.AppliedRevision = 0 }}},
		{"Comparing with the source", []func(envt){workloads(3), dependencies, comparing}},
		{"Comparing with the source, pinned at r40", []func(envt){workloads(3), pinned, comparing}},
		{"Not synced yet", []func(envt){comparing, func(e envt) { e.Status.AppliedRevision = 0 }}},
		{"Failed: no quota", []func(envt){failed("no quota"), comparing}},
		{"Held: window nightly opens 18:00 CET", []func(envt){workloads(3), held}},
		{"3 workloads changed, pinned at r40", []func(envt){workloads(3), pinned, func(e envt) {
			e.Status.Conditions = []metav1.Condition{
				{Type: v1alpha1.ConditionHeld, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPinned, Message: "pinned at r40"},
			}
		}}},
		{"Failed: ConfigMap 'app-config' does not exist", []func(envt){workloads(3), held, failed("ConfigMap 'app-config'\ndoes  not exist")}},
		{
			"Stalled: the catalog shop does not exist",
			[]func(envt){failed("x"), condition(v1alpha1.ConditionStalled, "the catalog shop does not exist")},
		},
		{
			"Failed to sync Secret 'login' from production - does not exist",
			[]func(envt){failed("Failed to sync Secret 'login' from\nproduction - does not exist")},
		},
		{"Failed: no quota", []func(envt){failed("no quota"), func(e envt) {
			e.Status.Conditions = []metav1.Condition{
				{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSyncFailed},
			}
		}}},
		{"Conflict: 3 fields", []func(envt){workloads(3), held, failed("x"), conflicts}},
		{"Syncing", []func(envt){workloads(3), conflicts, failed("x"), condition(v1alpha1.ConditionSyncing, "")}},
		{"Taking over a change of the spec", []func(envt){func(e envt) { e.Generation = 4 }}},
		{"Taking over a change by jane", []func(envt){failed("x"), func(e envt) {
			e.Generation, e.Status.PendingEdits = 4, []v1alpha1.EnvironmentEdit{{Generation: 3, Actor: "joe"}, {Generation: 4, Actor: "jane"}}
		}}},
		{"Not looked at yet", []func(envt){func(e envt) { e.Status = v1alpha1.EnvironmentStatus{} }}},
		{"Deleting", []func(envt){workloads(3), func(e envt) { e.DeletionTimestamp = &metav1.Time{} }}},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			e := environment()
			for _, do := range test.with {
				do(e)
			}
			if got := summary.Environment(e); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestList(t *testing.T) {
	names := []string{"web", "api"}
	if got := summary.List(names); got != "api, web" || names[0] != "web" {
		t.Errorf("%q of %v", got, names)
	}
	if got := summary.List(make([]string, 22)); !strings.HasSuffix(got, " and 2 more") {
		t.Errorf("%q", got)
	}
}

func TestWithEscapesInvisibleCharacters(t *testing.T) {
	if got, want := summary.With("Failed", "a\u202eb\u2028 c"), `Failed: a\u202eb c`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCut(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "twelve bytes": "twelve bytes", "more than twelve": "more than...", "häufig zu lang": "häufig z...",
	} {
		if got := summary.Cut(text, 12); got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func TestCounts(t *testing.T) {
	numbers := map[string]int{"NetworkPolicy": 2, "Gateway": 2, "Secret": 1, "Ingress": 2, "ConfigMap": 3}
	if got, want := summary.Counts(numbers), "3 ConfigMaps, 2 Gateways, 2 Ingresses, 2 NetworkPolicies, 1 Secret"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	if got := summary.Counts(nil); got != "" {
		t.Errorf("got %q", got)
	}
}
