// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

func TestEnvironmentStatus(t *testing.T) {
	type status = *configbutler.EnvironmentStatus
	api := configbutler.WorkloadReference{Kind: configbutler.WorkloadDeployment, Name: "api"}
	changed := configbutler.WorkloadChange{Kind: api.Kind, Name: api.Name, ChangeType: configbutler.ChangeChanged}
	image := configbutler.FieldConflict{Field: "/spec/template/spec/containers[name=web]/image", Managers: []string{"kubectl-edit"}}
	conflict := configbutler.WorkloadConflict{Kind: api.Kind, Name: api.Name, Fields: []configbutler.FieldConflict{image}}
	request := func(id string) configbutler.PendingEnvironmentRequest {
		return configbutler.PendingEnvironmentRequest{
			ID: id, Actor: "jane", Type: configbutler.EnvironmentRequestSync,
			Sync: &configbutler.SyncRequestSpec{Action: configbutler.SyncActionAll, Workloads: []configbutler.WorkloadReference{api}},
		}
	}
	resolve := configbutler.PendingEnvironmentRequest{
		ID: "2", Actor: "joe", Type: configbutler.EnvironmentRequestResolve,
		Resolve: &configbutler.ConflictResolutionSpec{Keep: []configbutler.ConflictChoice{{Kind: api.Kind, Name: api.Name}}},
	}
	rediscover := configbutler.PendingEnvironmentRequest{ID: "3", Actor: "joe", Type: configbutler.EnvironmentRequestRediscover}
	tests := []change[status]{
		{name: "all that there can be", do: func(s status) {
			s.ChangedWorkloadCount, s.ChangedWorkloads = 5, []configbutler.WorkloadChange{changed}
			s.ChangedDependencies = []configbutler.DependencyCount{{Type: configbutler.CountedSecret, Count: 1}}
			s.ActiveSyncs = []string{"alice-x", "alice-y"}
			s.Conflicts = []configbutler.WorkloadConflict{conflict}
			s.NotCopied = []configbutler.NotCopiedObject{
				{Kind: "ClusterRoleBinding", Name: "*", Reason: configbutler.NotCopiedUnreadable},
				{Kind: "PersistentVolumeClaim", Name: "data", Reason: configbutler.NotCopiedHoldsData},
				{Kind: "Role", Name: "api", Reason: configbutler.NotCopiedGrantsRights, ServiceAccounts: []string{"api", "web"}},
			}
			s.WorkloadsReady = &configbutler.WorkloadsReady{Ready: 2, Total: 2}
			s.AutomatedBy = &configbutler.AutomatedBy{Username: "jane"}
			s.PendingEdits = []configbutler.EnvironmentEdit{
				{Generation: 2, Actor: "jane", Fields: []string{"autoSync"}}, {Generation: 3, Actor: "joe"},
			}
			s.PendingRequests = []configbutler.PendingEnvironmentRequest{request("1"), resolve, rediscover}
		}},
		{name: "a rollback", do: func(s status) { s.AppliedRevision = 4 }},
		{name: "a recreated catalog", do: func(s status) { s.LatestRevision = 1 }},
		{
			name: "a negative revision", do: func(s status) { s.AppliedRevision = -1 },
			path: "status.appliedRevision", says: "greater than or equal to 0",
		},
		{
			name: "a negative offer", do: func(s status) { s.LatestRevision = -1 },
			path: "status.latestRevision", says: "greater than or equal to 0",
		},
		{name: "negative dismissals", do: func(s status) { s.Dismissals = -1 }, path: "status.dismissals", says: "greater than or equal to 0"},
		{
			name: "a generation that cannot be", do: func(s status) { s.ObservedGeneration = -1 },
			path: "status.observedGeneration", says: "greater than",
		},
		{
			name: "fewer workloads than are listed", do: func(s status) { s.ChangedWorkloads = []configbutler.WorkloadChange{changed} },
			path: "status.changedWorkloadCount", says: "at least 1, the number of changedWorkloads",
		},
		{
			name: "a workload twice", do: func(s status) {
				s.ChangedWorkloadCount, s.ChangedWorkloads = 2, []configbutler.WorkloadChange{changed, changed}
			},
			path: "status.changedWorkloads[1]", says: "Duplicate",
		},
		{
			name: "not copied twice", do: func(s status) {
				claim := configbutler.NotCopiedObject{Kind: "PersistentVolumeClaim", Name: "data", Reason: configbutler.NotCopiedHoldsData}
				s.NotCopied = []configbutler.NotCopiedObject{claim, claim}
			},
			path: "status.notCopied[1]", says: "Duplicate",
		},
		{
			name: "not copied for a reason of its own", do: func(s status) {
				s.NotCopied = []configbutler.NotCopiedObject{{Kind: "Role", Name: "api", Reason: "Lost"}}
			},
			path: "status.notCopied[0].reason", says: "supported values",
		},
		{
			name: "more accounts than are listed", do: func(s status) {
				s.NotCopied = []configbutler.NotCopiedObject{{Kind: "Role", Name: "api", Reason: configbutler.NotCopiedGrantsRights}}
				for i := range 101 {
					s.NotCopied[0].ServiceAccounts = append(s.NotCopied[0].ServiceAccounts, fmt.Sprint(i))
				}
			},
			path: "status.notCopied[0].serviceAccounts", says: "must have at most 100",
		},
		{
			name: "changed in no way", do: func(s status) {
				s.ChangedWorkloadCount, s.ChangedWorkloads = 1, []configbutler.WorkloadChange{{Kind: api.Kind, Name: api.Name}}
			},
			path: "status.changedWorkloads[0].changeType", says: `"Added", "Changed", "Removed"`,
		},
		{
			name: "dependencies of no kind", do: func(s status) { s.ChangedDependencies = []configbutler.DependencyCount{{Type: "Pod", Count: 1}} },
			path: "status.changedDependencies[0].type",
			says: `"ConfigMap", "Secret", "Service", "ServiceAccount", "HorizontalPodAutoscaler", "PodDisruptionBudget", "Ingress"`,
		},
		{
			name: "no dependencies", do: func(s status) {
				s.ChangedDependencies = []configbutler.DependencyCount{{Type: configbutler.CountedSecret}}
			},
			path: "status.changedDependencies[0].count", says: "at least 1",
		},
		{
			name: "five runs", do: func(s status) { s.ActiveSyncs = []string{"a", "b", "c", "d", "e"} },
			path: "status.activeSyncs", says: "at most 4",
		},
		{
			name: "a conflict about nothing", do: func(s status) {
				s.Conflicts = []configbutler.WorkloadConflict{{Kind: api.Kind, Name: api.Name}}
			},
			path: "status.conflicts[0].fields", says: "about one field at least",
		},
		{
			name: "a conflict twice", do: func(s status) { s.Conflicts = []configbutler.WorkloadConflict{conflict, conflict} },
			path: "status.conflicts[1]", says: "Duplicate",
		},
		{
			name: "a field twice", do: func(s status) {
				s.Conflicts = []configbutler.WorkloadConflict{{Kind: api.Kind, Name: api.Name, Fields: []configbutler.FieldConflict{image, image}}}
			},
			path: "status.conflicts[0].fields[1]", says: "Duplicate",
		},
		{
			name: "more ready than there are", do: func(s status) { s.WorkloadsReady = &configbutler.WorkloadsReady{Ready: 3, Total: 2} },
			path: "status.workloadsReady.ready", says: "at most 2, the total",
		},
		{
			name: "turned on without a user", do: func(s status) { s.AutomatedBy = &configbutler.AutomatedBy{} },
			path: "status.automatedBy.username", says: "the user who turned automatic syncs on",
		},
		{
			name: "a revision twice", do: func(s status) { s.History[1].Revision = 5 },
			path: "status.history[1].revision", says: "Duplicate",
		},
		{
			name: "a revision that cannot be", do: func(s status) { s.History[0].Revision = 0 },
			path: "status.history[0].revision", says: "at least 1",
		},
		{
			name: "an edit without a user", do: func(s status) { s.PendingEdits = []configbutler.EnvironmentEdit{{Generation: 2}} },
			path: "status.pendingEdits[0].actor", says: "the user who made",
		},
		{
			name: "an edit twice", do: func(s status) {
				s.PendingEdits = []configbutler.EnvironmentEdit{{Generation: 2, Actor: "jane"}, {Generation: 2, Actor: "joe"}}
			},
			path: "status.pendingEdits[1].generation", says: "Duplicate",
		},
		{
			name: "a request twice", do: func(s status) {
				s.PendingRequests = []configbutler.PendingEnvironmentRequest{request("1"), request("1")}
			},
			path: "status.pendingRequests[1].id", says: "Duplicate",
		},
		{
			name: "a request of another type", do: func(s status) {
				s.PendingRequests = []configbutler.PendingEnvironmentRequest{request("1"), rediscover}
				s.PendingRequests[1].Sync = s.PendingRequests[0].Sync
			},
			path: "status.pendingRequests[1].sync", says: "must be absent unless type is Sync",
		},
		{
			name: "a request for nothing", do: func(s status) {
				s.PendingRequests = []configbutler.PendingEnvironmentRequest{resolve}
				s.PendingRequests[0].Resolve = nil
			},
			path: "status.pendingRequests[0].resolve", says: "type Resolve needs it",
		},
		{
			name: "too many requests", do: func(s status) {
				for i := range v1alpha1.MaxPendingSyncs + 1 {
					s.PendingRequests = append(s.PendingRequests, request(fmt.Sprint(i)))
				}
			},
			path: "status.pendingRequests", says: "at most 16",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := environment()
			test.do(&e.Status)
			test.check(t, validation.ValidateEnvironmentStatusUpdate(e, environment()))
		})
	}
}

func environmentDependency() *configbutler.EnvironmentDependency {
	return &configbutler.EnvironmentDependency{
		ObjectMeta: meta("alice.configmap.app.config"),
		Status: configbutler.EnvironmentDependencyRecord{
			Environment: "alice", Type: configbutler.DependencyConfigMap,
			Source: configbutler.NamespacedObjectReference{Namespace: "production", Name: "app.config"},
			Target: configbutler.NamespacedObjectReference{Namespace: "alice", Name: "app.config"},
			Keys:   []string{"a.yaml", "b.yaml"},
			ReferredBy: []configbutler.DependencyReference{
				{Kind: "Deployment", Name: "api", Field: "/spec/template/spec/volumes[name=config]/configMap/name"},
				{Kind: "Deployment", Name: "api", Field: "/spec/template/spec/volumes[name=other]/configMap/name"},
			},
		},
	}
}

func TestEnvironmentDependency(t *testing.T) {
	type dep = *configbutler.EnvironmentDependency
	create, update := validation.ValidateEnvironmentDependency, validation.ValidateEnvironmentDependencyUpdate
	checkChanges(t, environmentDependency, create, update, []change[dep]{
		{name: "no object refers to it any more", do: func(d dep) { d.Status.ReferredBy = nil }},
		{name: "the source lacks it", do: func(d dep) { d.Status.Missing, d.Status.Keys = true, nil }},
		{name: "another version was seen", do: func(d dep) { d.Status.SeenHash = "0f" }},
		{name: "it was seen to be gone", do: func(d dep) { d.Status.SeenHash = "removed" }},
		{
			name: "content where a hash belongs", do: func(d dep) { d.Status.SeenHash = "hunter2" },
			path: "status.seenHash", says: "must be a hash",
		},
		{
			name: "another type", do: func(d dep) { d.Status.Type = "Pod" },
			path: "status.type", says: `"ConfigMap", "Secret", "Service", "ServiceAccount"`,
		},
		{
			name: "another object", do: func(d dep) { d.Status.Target.Name = "other" },
			path: "metadata.name", says: `"alice.configmap.other"`,
		},
		{
			name: "another environment", do: func(d dep) { d.Status.Environment = "bob" },
			path: "metadata.name", says: `"bob.configmap.app.config"`,
		},
		{
			name: "no environment", do: func(d dep) { d.Status.Environment = "" },
			path: "status.environment", says: "RFC 1123",
		},
		{
			name: "no source", do: func(d dep) { d.Status.Source.Namespace = "" },
			path: "status.source.namespace", says: "Required",
		},
		{
			name: "a key twice", do: func(d dep) { d.Status.Keys[1] = "a.yaml" },
			path: "status.keys[1]", says: "Duplicate",
		},
		{
			name: "too many keys", do: func(d dep) { d.Status.Keys = strings.Fields(numbers(v1alpha1.MaxKeys + 1)) },
			path: "status.keys", says: "at most 1000",
		},
		{
			name: "a reference from no object", do: func(d dep) { d.Status.ReferredBy[0].Kind = "deployment" },
			path: "status.referredBy[0].kind", says: "such as Deployment",
		},
		{
			name: "nowhere", do: func(d dep) { d.Status.ReferredBy[0].Field = "" },
			path: "status.referredBy[0].field", says: "where the object refers to it",
		},
		{
			name: "the same place twice", do: func(d dep) { d.Status.ReferredBy[1] = d.Status.ReferredBy[0] },
			path: "status.referredBy[1]", says: "Duplicate",
		},
	})
}

// numbers are those up to a number, with spaces between them.
func numbers(count int) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, "%d ", i)
	}
	return text.String()
}
