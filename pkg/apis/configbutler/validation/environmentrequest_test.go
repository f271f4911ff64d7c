// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/validation"
)

func TestSyncRequest(t *testing.T) {
	type spec = *configbutler.SyncRequestSpec
	tests := []change[spec]{
		{name: "all, as it was seen", do: func(s spec) { s.ExpectedCatalogSync, s.ExpectedDependencySync, s.Force = "shop-a", "alice-b", true }},
		{name: "the catalog, as it was seen", do: func(s spec) { s.Action, s.ExpectedCatalogSync = configbutler.SyncActionCatalog, "shop-a" }},
		{name: "the cluster, as it was seen", do: func(s spec) { s.Action, s.ExpectedDependencySync = configbutler.SyncActionCluster, "alice-b" }},
		{name: "some workloads", do: func(s spec) {
			s.Workloads = []configbutler.WorkloadReference{{Kind: configbutler.WorkloadJob, Name: "a"}, {Kind: configbutler.WorkloadCronJob, Name: "a"}}
		}},
		{name: "an unknown action", do: func(s spec) { s.Action = "Now" }, path: "spec.action", says: `"Catalog", "Cluster", "All"`},
		{
			name: "a catalog that is not synced", do: func(s spec) { s.Action, s.ExpectedCatalogSync = configbutler.SyncActionCluster, "shop-a" },
			path: "spec.expectedCatalogSync", says: "must be absent when action is Cluster",
		},
		{
			name: "dependencies that are not refreshed", do: func(s spec) { s.Action, s.ExpectedDependencySync = configbutler.SyncActionCatalog, "a" },
			path: "spec.expectedDependencySync", says: "must be absent when action is Catalog",
		},
		{
			name: "a workload twice", do: func(s spec) {
				s.Workloads = []configbutler.WorkloadReference{{Kind: configbutler.WorkloadJob, Name: "a"}, {Kind: configbutler.WorkloadJob, Name: "a"}}
			},
			path: "spec.workloads[1]", says: "Duplicate",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request := &configbutler.SyncRequest{Spec: configbutler.SyncRequestSpec{Action: configbutler.SyncActionAll}}
			test.do(&request.Spec)
			test.check(t, validation.ValidateSyncRequest(request, "alice"))
		})
	}
}

func TestConflictResolution(t *testing.T) {
	const image, replicas = "/spec/template/spec/containers[name=web]/image", "/spec/replicas"
	conflicts := []configbutler.WorkloadConflict{
		{Kind: configbutler.WorkloadDeployment, Name: "api", Fields: []configbutler.FieldConflict{{Field: image}, {Field: replicas}}},
		{Kind: configbutler.WorkloadDeployment, Name: "web", Fields: []configbutler.FieldConflict{{Field: image}}},
	}
	choice := func(name string, fields ...string) configbutler.ConflictChoice {
		return configbutler.ConflictChoice{Kind: configbutler.WorkloadDeployment, Name: name, Fields: fields}
	}
	type choices = []configbutler.ConflictChoice
	tests := []struct {
		keep, take choices
		change[struct{}]
	}{
		{keep: choices{choice("api", image)}, take: choices{choice("api", replicas), choice("web")}, change: change[struct{}]{name: "all"}},
		{take: choices{choice("api")}, change: change[struct{}]{name: "one workload"}},
		{change: change[struct{}]{name: "nothing", path: "spec", says: "fields to keep, fields to take, or both"}},
		{keep: choices{choice("db")}, change: change[struct{}]{name: "another workload", path: "spec.keep[0]", says: `"Deployment/api", "Deployment/web"`}},
		{
			take:   choices{choice("web", replicas)},
			change: change[struct{}]{name: "another field", path: "spec.take[0].fields", says: image},
		},
		{
			keep: choices{choice("api", image)}, take: choices{choice("api", image)},
			change: change[struct{}]{name: "both", path: "spec.take[0].fields", says: "Duplicate"},
		},
		{
			keep: choices{choice("web")}, take: choices{choice("web")},
			change: change[struct{}]{name: "both of a workload", path: "spec.take[0].fields", says: "Duplicate"},
		},
		{
			keep:   choices{choice("web"), choice("web")},
			change: change[struct{}]{name: "a workload twice", path: "spec.keep[1]", says: "Duplicate"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request := &configbutler.ConflictResolution{Spec: configbutler.ConflictResolutionSpec{Keep: test.keep, Take: test.take}}
			test.check(t, validation.ValidateConflictResolution(request, "alice", conflicts))
		})
	}
	request := &configbutler.ConflictResolution{Spec: configbutler.ConflictResolutionSpec{Keep: choices{choice("api")}}}
	change[struct{}]{path: "spec.keep[0]", says: "status.conflicts is empty"}.check(t, validation.ValidateConflictResolution(request, "alice", nil))
}
