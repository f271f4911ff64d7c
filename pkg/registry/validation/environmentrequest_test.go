// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

func TestSyncRequest(t *testing.T) {
	type spec = *configbutler.SyncRequestSpec
	tests := []change[spec]{
		{name: "all, as it was seen", do: func(s spec) { s.ExpectedCatalogSync, s.ExpectedDependencySync, s.Force = "shop-a", "alice-b", true }},
		{name: "the catalog, as it was seen", do: func(s spec) { s.Action, s.ExpectedCatalogSync = configbutler.SyncActionCatalog, "shop-a" }},
		{
			name: "the cluster, as it was seen", do: func(s spec) { s.Action, s.ExpectedDependencySync = configbutler.SyncActionCluster, "alice-b" },
		},
		{name: "some workloads", do: func(s spec) {
			s.Workloads = []configbutler.WorkloadReference{
				{Kind: configbutler.WorkloadJob, Name: "a"}, {Kind: configbutler.WorkloadCronJob, Name: "a"},
			}
		}},
		{name: "an unknown action", do: func(s spec) { s.Action = "Now" }, path: "spec.action", says: `"Catalog", "Cluster", "All"`},
		{
			name: "a catalog that is not synced", do: func(s spec) { s.Action, s.ExpectedCatalogSync = configbutler.SyncActionCluster, "shop-a" },
			path: "spec.expectedCatalogSync", says: "must be absent when action is Cluster",
		},
		{
			name: "dependencies that are not refreshed",
			do:   func(s spec) { s.Action, s.ExpectedDependencySync = configbutler.SyncActionCatalog, "a" },
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

func TestSyncRequestWorkloads(t *testing.T) {
	workload := func(name string) configbutler.WorkloadReference {
		return configbutler.WorkloadReference{Kind: configbutler.WorkloadDeployment, Name: name}
	}
	offers := func(names ...string) (entries []configbutler.CatalogEntry) {
		for _, name := range names {
			entries = append(entries, configbutler.CatalogEntry{Kind: configbutler.WorkloadDeployment, Name: name})
		}
		return entries
	}
	type envt = *configbutler.Environment
	branch := func(e envt) {
		e.Spec.Type, e.Spec.BranchWorkloads = configbutler.EnvironmentBranch, []configbutler.WorkloadReference{workload("api")}
	}
	tests := []struct {
		offers []configbutler.CatalogEntry
		asks   []configbutler.WorkloadReference
		change[envt]
	}{
		{
			offers: offers("api", "web"), asks: []configbutler.WorkloadReference{workload("web")}, change: change[envt]{name: "one that is offered"},
		},
		{
			offers: offers("api"), asks: []configbutler.WorkloadReference{workload("web")},
			change: change[envt]{name: "one that is to be removed", do: func(e envt) {
				e.Status.ChangedWorkloads = []configbutler.WorkloadChange{
					{Kind: configbutler.WorkloadDeployment, Name: "web", ChangeType: configbutler.ChangeRemoved},
				}
			}},
		},
		{
			offers: offers("api", "web"), asks: []configbutler.WorkloadReference{workload("api"), workload("db")},
			change: change[envt]{name: "an unknown workload", path: "spec.workloads[1]", says: `"Deployment/api", "Deployment/web"`},
		},
		{
			offers: offers("web"), asks: []configbutler.WorkloadReference{{Kind: configbutler.WorkloadJob, Name: "web"}},
			change: change[envt]{name: "another kind", path: "spec.workloads[0]", says: `"Job/web": supported values: "Deployment/web"`},
		},
		{
			offers: offers("api", "web"), asks: []configbutler.WorkloadReference{workload("web")},
			change: change[envt]{
				name: "one that a branch does not hold", do: branch, path: "spec.workloads[0]", says: `supported values: "Deployment/api"`,
			},
		},
		{asks: []configbutler.WorkloadReference{workload("web")}, change: change[envt]{
			name: "nothing is offered", path: "spec.workloads[0]", says: "AppCatalog teams/shop offers no workload for this environment yet",
		}},
		{
			offers: offers(strings.Split("abcdefghijklmnopqrstu", "")...), asks: []configbutler.WorkloadReference{workload("web")},
			change: change[envt]{name: "many are offered", path: "spec.workloads[0]", says: "none of the 21 workloads"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			environment := &configbutler.Environment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "alice"},
				Spec:       configbutler.EnvironmentSpec{CatalogRef: configbutler.ObjectReference{Name: "shop"}},
			}
			if test.do != nil {
				test.do(environment)
			}
			request := &configbutler.SyncRequest{Spec: configbutler.SyncRequestSpec{Workloads: test.asks}}
			offering := &configbutler.AppCatalog{Status: configbutler.AppCatalogStatus{Workloads: test.offers}}
			test.check(t, validation.ValidateSyncRequestWorkloads(request, environment, offering))
		})
	}
}

func TestConflictResolution(t *testing.T) {
	const image, replicas = "/spec/template/spec/containers[name=web]/image", "/spec/replicas"
	conflicts := []configbutler.WorkloadConflict{
		{Kind: configbutler.WorkloadDeployment, Name: "api", Fields: []configbutler.FieldConflict{{Field: image}, {Field: replicas}}},
		{Kind: configbutler.WorkloadDeployment, Name: "web", Fields: []configbutler.FieldConflict{{Field: image}}},
		{Kind: configbutler.WorkloadDeployment, Name: "own", Fields: []configbutler.FieldConflict{
			{Field: image, Managers: []string{"slipstream"}}, {Field: replicas},
		}},
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
		{
			keep:   choices{choice("db")},
			change: change[struct{}]{name: "another workload", path: "spec.keep[0]", says: `"Deployment/api", "Deployment/web", "Deployment/own"`},
		},
		{
			take:   choices{choice("web", replicas)},
			change: change[struct{}]{name: "another field", path: "spec.take[0].fields", says: image},
		},
		{
			keep: choices{choice("api", image)}, take: choices{choice("api", image)},
			change: change[struct{}]{name: "both", path: "spec.take[0].fields", says: "Duplicate"},
		},
		{
			keep: choices{choice("own", image)}, take: choices{choice("own", replicas)}, change: change[struct{}]{name: "a declared field kept"},
		},
		{take: choices{choice("own")}, change: change[struct{}]{name: "what is not declared taken"}},
		{
			take:   choices{choice("own", image)},
			change: change[struct{}]{name: "a declared field taken", path: "spec.take[0].fields", says: "out of spec.patches"},
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
	change[struct{}]{path: "spec.keep[0]", says: "status.conflicts is empty"}.check(t,
		validation.ValidateConflictResolution(request, "alice", nil))
}
