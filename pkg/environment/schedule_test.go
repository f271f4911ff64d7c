// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// quiet returns the state of an environment with revision 1, of a catalog that offers revision 1.
func quiet() *state {
	policy := &v1alpha1.SyncPolicy{}
	v1alpha1.SetObjectDefaults_SyncPolicy(policy)
	s := &state{environment: environmenttest.Environment(), catalog: environmenttest.Catalog(), policy: &policy.Spec, now: noon}
	s.environment.Generation, s.environment.Status.AppliedRevision = 3, 1
	s.catalog.Status.LatestSync = "shop-r1"
	return s
}

// record adds a record of a batch, detected a number of seconds before noon. It is automatic unless it has a user.
func (s *state) record(batch string, of v1alpha1.SyncType, in v1alpha1.SyncState, before int, by string) *v1alpha1.SyncStatus {
	at := metav1.NewTime(noon.Add(-time.Duration(before) * time.Second))
	record := &v1alpha1.SyncStatus{
		ObjectMeta: metav1.ObjectMeta{Name: batch, CreationTimestamp: at},
		Spec:       v1alpha1.SyncStatusSpec{Type: of, Batch: batch},
		Status:     v1alpha1.SyncRecord{State: in, DetectedAt: at, Actor: by, AutoTriggered: by == "", Attempts: 1},
	}
	if in == v1alpha1.SyncStateFailed {
		record.Status.Error = &v1alpha1.SyncError{Reason: "Refused", Message: "no", At: at}
	}
	s.records = s.records.with(record)
	return record
}

const (
	catalogRun = v1alpha1.SyncTypeEnvironment
	refreshRun = v1alpha1.SyncTypeDependency
	pending    = v1alpha1.SyncStatePending
	inProgress = v1alpha1.SyncStateInProgress
	retrying   = v1alpha1.SyncStateRetrying
	hasFailed  = v1alpha1.SyncStateFailed
)

func TestNext(t *testing.T) {
	auto := func(s *state) { s.environment.Spec.AutoSync = true }
	closed := func(s *state) {
		s.environment.Spec.SyncWindows = []v1alpha1.SyncWindow{{
			Name: "freeze", Kind: v1alpha1.SyncWindowDeny, Schedule: "0 12 * * *", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "UTC",
		}}
	}
	pinned := func(s *state) { s.environment.Spec.PinnedRevision = new(int64(1)) }
	offered := func(s *state) { s.catalog.Status.Revision, s.catalog.Status.LatestSync = 2, "shop-r2" }
	replaced := func(s *state) {
		s.catalog.UID, s.catalog.CreationTimestamp = "33333333-3333-3333-3333-333333333333", metav1.NewTime(noon.Add(-5*time.Second))
	}
	add := func(batch string, of v1alpha1.SyncType, in v1alpha1.SyncState, before int, by string) func(*state) {
		return func(s *state) { s.record(batch, of, in, before, by) }
	}
	for name, tt := range map[string]struct {
		do    []func(*state)
		want  string
		held  string
		again time.Duration
	}{
		"nothing":                     {},
		"a request":                   {do: []func(*state){add("a", catalogRun, pending, 1, "jane")}, want: "a"},
		"while a sync is in progress": {do: []func(*state){add("a", catalogRun, pending, 1, "jane"), func(s *state) { s.syncing = true }}},
		"with an obstacle": {
			do: []func(*state){add("a", catalogRun, pending, 1, "jane"), func(s *state) { s.obstacle.Code = "x" }},
		},
		"what was interrupted": {
			do: []func(*state){add("a", catalogRun, pending, 1, "jane"), add("b", refreshRun, inProgress, 9, "")}, want: "b",
		},
		"workloads of what was": {
			do: []func(*state){add("a", catalogRun, inProgress, 9, ""), add("b", refreshRun, inProgress, 1, "")}, want: "a",
		},
		"interrupted in a closed window": {do: []func(*state){closed, add("a", catalogRun, inProgress, 9, "")}, want: "a"},
		"the catalog first": {
			do: []func(*state){auto, add("a", refreshRun, pending, 9, ""), add("b", catalogRun, pending, 1, "")}, want: "b",
		},
		"the newest": {
			do: []func(*state){add("a", catalogRun, retrying, 9, "jane"), add("b", catalogRun, pending, 1, "jane")}, want: "b",
		},
		"a prompt":                     {do: []func(*state){add("a", refreshRun, pending, 1, "")}},
		"a prompt that a user accepts": {do: []func(*state){add("a", refreshRun, pending, 1, "jane")}, want: "a"},
		"a prompt that is tried again": {do: []func(*state){add("a", refreshRun, retrying, 1, "")}, want: "a"},
		"a failure before its time":    {do: []func(*state){add("a", catalogRun, hasFailed, 3, "jane")}, again: 7 * time.Second},
		"a failure in time":            {do: []func(*state){add("a", catalogRun, hasFailed, 10, "jane")}, want: "a"},
		"what can continue beside a failure": {
			do: []func(*state){auto, add("a", catalogRun, hasFailed, 3, ""), add("b", refreshRun, pending, 1, "")}, want: "b", again: 0,
		},
		"a closed window": {
			do: []func(*state){closed, add("a", catalogRun, pending, 1, "jane")}, held: v1alpha1.ReasonWindowClosed, again: time.Hour,
		},
		"a closed window, forced": {do: []func(*state){closed, func(s *state) {
			s.record("a", catalogRun, pending, 1, "jane").Status.Force = true
		}}, want: "a"},
		"a closed window, a rollback": {
			do: []func(*state){closed, pinned, add(syncstatus.EditBatch(3), catalogRun, pending, 1, "jane")}, want: "generation-3",
		},
		"pinned":                      {do: []func(*state){auto, pinned, offered}, held: v1alpha1.ReasonPinned},
		"pinned, and nothing offered": {do: []func(*state){auto, pinned}},
		"pinned and asked for": {
			do: []func(*state){pinned, offered, add("a", catalogRun, pending, 1, "jane")}, want: "a",
		},
		"a kill switch": {
			do: []func(*state){auto, offered, func(s *state) { s.policy.Suspend.EnvironmentAutoSync = true }}, held: v1alpha1.ReasonSuspended,
		},
		"a kill switch and a request": {
			do:   []func(*state){auto, add("a", catalogRun, pending, 1, "jane"), func(s *state) { s.policy.Suspend.EnvironmentAutoSync = true }},
			want: "a",
		},
		"the other kill switch": {
			do: []func(*state){auto, add("a", catalogRun, pending, 1, ""), func(s *state) { s.policy.Suspend.DependencyAutoSync = true }}, want: "a",
		},
		"the kill switch of refreshes": {
			do:   []func(*state){auto, add("a", refreshRun, pending, 1, ""), func(s *state) { s.policy.Suspend.DependencyAutoSync = true }},
			held: v1alpha1.ReasonSuspended,
		},
		"a permission that is lost": {
			do:   []func(*state){auto, add("a", catalogRun, pending, 1, ""), func(s *state) { s.lost.Code = "PermissionLost" }},
			held: v1alpha1.ReasonPermissionLost,
		},
		"a permission that is lost while nothing is offered": {
			do: []func(*state){auto, func(s *state) { s.lost.Code = "PermissionLost" }}, held: v1alpha1.ReasonPermissionLost,
		},
		"a permission that is not known then": {do: []func(*state){auto, func(s *state) { s.lost.Code = "Unreachable" }}},
		"another catalog":                     {do: []func(*state){auto, offered, replaced}, held: v1alpha1.ReasonCatalogReplaced},
		"another catalog, nothing offered":    {do: []func(*state){auto, replaced}},
		"another catalog, a retry": {
			do: []func(*state){auto, replaced, add("a", catalogRun, retrying, 1, "")}, held: v1alpha1.ReasonCatalogReplaced,
		},
		"another catalog, a refresh": {
			do: []func(*state){auto, replaced, add("a", refreshRun, pending, 1, "")}, held: v1alpha1.ReasonCatalogReplaced,
		},
		"another catalog, asked for before": {
			do: []func(*state){replaced, add("a", catalogRun, pending, 9, "jane")}, held: v1alpha1.ReasonCatalogReplaced,
		},
		"another catalog, asked for in that second": {
			do: []func(*state){replaced, add("a", catalogRun, pending, 5, "jane")}, held: v1alpha1.ReasonCatalogReplaced,
		},
		"another catalog, asked for since": {do: []func(*state){replaced, add("a", catalogRun, pending, 4, "jane")}, want: "a"},
		"another catalog, a rollback": {
			do: []func(*state){replaced, pinned, func(s *state) {
				s.record(syncstatus.EditBatch(3), catalogRun, pending, 9, "jane").Status.Revision = 1
			}},
			want: "generation-3",
		},
		"another catalog, without automatic syncs": {do: []func(*state){offered, replaced}, held: v1alpha1.ReasonCatalogReplaced},
		"another catalog, asked for while closed": {
			do: []func(*state){replaced, closed, add("a", catalogRun, pending, 1, "jane")}, held: v1alpha1.ReasonWindowClosed, again: time.Hour,
		},
		"another catalog, a prompt accepted since": {do: []func(*state){replaced, func(s *state) {
			s.record("a", refreshRun, pending, 9, "jane").Status.RequestedBy = &v1alpha1.AutomatedBy{Username: "jane", Time: metav1.NewTime(noon)}
		}}, want: "a"},
		"a permission that is not checked": {
			do: []func(*state){add("a", catalogRun, pending, 1, "jane"), func(s *state) { s.lost.Code = "PermissionLost" }}, want: "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := quiet()
			for _, do := range tt.do {
				do(s)
			}
			got := s.schedule().next()
			chosen := ""
			if got.record != nil {
				chosen = got.record.Name
			}
			var again time.Duration
			if !got.again.IsZero() {
				again = got.again.Sub(noon)
			}
			if chosen != tt.want || got.held.Code != tt.held || again != tt.again {
				t.Errorf("chosen %q, held %q, retried in %s", chosen, got.held.Code, again)
			}
		})
	}
}

func TestDesiredSyncs(t *testing.T) {
	request := func(id string, second int, spec v1alpha1.SyncRequestSpec) func(*state) {
		return func(s *state) {
			s.environment.Status.PendingRequests = append(s.environment.Status.PendingRequests, v1alpha1.PendingEnvironmentRequest{
				ID: id, Actor: "jane", Time: metav1.NewTime(noon.Add(time.Duration(second) * time.Second)),
				Type: v1alpha1.EnvironmentRequestSync, Sync: &spec,
			})
		}
	}
	edit := func(generation int64, second int, fields ...string) func(*state) {
		return func(s *state) {
			s.environment.Status.PendingEdits = append(s.environment.Status.PendingEdits, v1alpha1.EnvironmentEdit{
				Generation: generation, Actor: "eve", Time: metav1.NewTime(noon.Add(time.Duration(second) * time.Second)), Fields: fields,
			})
		}
	}
	auto := func(s *state) { s.environment.Spec.AutoSync = true }
	offered := func(s *state) { s.catalog.Status.Revision, s.catalog.Status.LatestSync = 2, "shop-r2" }
	pinned := func(s *state) { s.environment.Spec.PinnedRevision = new(int64(1)) }
	for name, tt := range map[string]struct {
		do   []func(*state)
		want string
	}{
		"nothing":                    {},
		"what is offered":            {do: []func(*state){offered}},
		"what is offered, by itself": {do: []func(*state){auto, offered}, want: "auto.shop-r2.3 Catalog r2"},
		"what an edit changes": {
			do: []func(*state){auto, func(s *state) { s.offer = &offer{changes: true} }}, want: "auto.shop-r1.3 Catalog r1",
		},
		"an edit without effect": {do: []func(*state){auto, edit(3, 0, "ttl"), func(s *state) { s.offer = &offer{} }}},
		"a request": {
			do: []func(*state){offered, request("a", 0, v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionAll})}, want: "a All r2 jane",
		},
		"a request of a pinned one": {
			do:   []func(*state){offered, pinned, request("a", 0, v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCatalog})},
			want: "a Catalog r1 jane",
		},
		"a forced one": {
			do:   []func(*state){offered, pinned, request("a", 0, v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionAll, Force: true})},
			want: "a All r2 jane",
		},
		"a refresh": {do: []func(*state){request("a", 0, v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster})}},
		"a pin": {
			do: []func(*state){pinned, edit(2, 0, pinField), edit(3, 1, "ttl")}, want: "generation-2 Catalog r1 eve",
		},
		"a pin that was taken out": {do: []func(*state){edit(3, 0, pinField)}},
		"in the order of asking": {
			do:   []func(*state){pinned, request("a", 5, v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionAll}), edit(3, 1, pinField)},
			want: "generation-3 Catalog r1 eve, a All r1 jane",
		},
		"not when a user requests": {
			do: []func(*state){auto, offered, request("a", 0, v1alpha1.SyncRequestSpec{Force: true})}, want: "a All r2 jane",
		},
		"not while a requested one waits": {do: []func(*state){auto, offered, func(s *state) { s.record("a", catalogRun, pending, 1, "jane") }}},
		"not behind a kill switch":        {do: []func(*state){auto, offered, func(s *state) { s.policy.Suspend.EnvironmentAutoSync = true }}},
		"not without permission":          {do: []func(*state){auto, offered, func(s *state) { s.lost.Code = "x" }}},
		"beside what a user requested": {
			do:   []func(*state){auto, offered, func(s *state) { s.record("a", catalogRun, inProgress, 1, "jane") }},
			want: "auto.shop-r2.3 Catalog r2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := quiet()
			for _, do := range tt.do {
				do(s)
			}
			var got []string
			for _, w := range s.triggers().desiredSyncs() {
				line := []string{w.batch, string(w.action), "r" + string(rune('0'+w.revision))}
				if w.by != nil {
					line = append(line, w.by.Username)
				}
				got = append(got, strings.TrimSpace(strings.Join(line, " ")))
			}
			if strings.Join(got, ", ") != tt.want {
				t.Errorf("desired syncs = %q", got)
			}
		})
	}
}

func TestResolution(t *testing.T) {
	choice := func(name string, fields ...string) v1alpha1.ConflictChoice {
		return v1alpha1.ConflictChoice{Kind: v1alpha1.WorkloadDeployment, Name: name, Fields: fields}
	}
	s := quiet()
	for _, decision := range []v1alpha1.ConflictResolutionSpec{
		{Keep: []v1alpha1.ConflictChoice{choice("web", "/a", "/b"), choice("api")}, Take: []v1alpha1.ConflictChoice{choice("worker", "/c")}},
		{Take: []v1alpha1.ConflictChoice{choice("web", "/b"), choice("worker")}},
		{Keep: []v1alpha1.ConflictChoice{choice("worker", "/d")}},
	} {
		s.environment.Status.PendingRequests = append(s.environment.Status.PendingRequests,
			v1alpha1.PendingEnvironmentRequest{Type: v1alpha1.EnvironmentRequestResolve, Resolve: &decision})
	}
	want := v1alpha1.ConflictResolutionSpec{
		Keep: []v1alpha1.ConflictChoice{choice("worker", "/d"), choice("web", "/a"), choice("api")},
		Take: []v1alpha1.ConflictChoice{choice("web", "/b"), choice("worker")},
	}
	if diff := cmp.Diff(want, s.requests().resolution()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOrderOfWhatWaits(t *testing.T) {
	s := quiet()
	for _, id := range []string{"b", "a"} {
		s.environment.Status.PendingRequests = append(s.environment.Status.PendingRequests, v1alpha1.PendingEnvironmentRequest{ID: id})
	}
	for _, record := range [][2]string{{"c", ""}, {"a", "jane"}, {"b", "jane"}} {
		s.record(record[0], catalogRun, pending, 1, record[1])
	}
	s.record("first", catalogRun, pending, 2, "jane")
	waiting := slices.SortedStableFunc(slices.Values(s.records), s.requests().compareOrder)
	var got []string
	for _, record := range waiting {
		got = append(got, record.Name)
	}
	if !slices.Equal(got, []string{"first", "c", "b", "a"}) {
		t.Errorf("order = %q", got)
	}
}
