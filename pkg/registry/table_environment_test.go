// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// environmentLists have a row for each way in which a cell of the kinds of environments can look.
func environmentLists() map[string]runtime.Object {
	return map[string]runtime.Object{
		"environments":            &configbutler.EnvironmentList{Items: environmentRows()},
		"environmentdependencies": &configbutler.EnvironmentDependencyList{Items: dependencyRows()},
	}
}

func environmentRows() []configbutler.Environment {
	row := func(name string, change func(*configbutler.Environment)) configbutler.Environment {
		environment := configbutler.Environment{
			ObjectMeta: named(name, 26*time.Hour),
			Spec: configbutler.EnvironmentSpec{
				CatalogRef: configbutler.ObjectReference{Name: "shop"}, TargetNamespace: "shop-" + name, Type: configbutler.EnvironmentShared,
			},
			Status: configbutler.EnvironmentStatus{
				ObservedGeneration: 2, LatestRevision: 42, AppliedRevision: 42, LatestCatalogSync: "shop-x7k2p",
				LastCatalogSyncedAt: new(before(5 * time.Minute)), LastDependencySyncedAt: new(before(2 * time.Hour)),
				WorkloadsReady: &configbutler.WorkloadsReady{Ready: 5, Total: 5},
				Conditions: []metav1.Condition{
					{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded},
				},
			},
		}
		environment.Generation = 2
		change(&environment)
		return environment
	}
	return []configbutler.Environment{
		row("new", func(o *configbutler.Environment) { o.Status = configbutler.EnvironmentStatus{} }),
		row("staging", func(o *configbutler.Environment) { o.Spec.AutoSync = true }),
		row("watched", func(o *configbutler.Environment) { o.Spec.AutoSync, o.Spec.Shadow = true, true }),
		row("alice", func(o *configbutler.Environment) {
			o.Spec.CatalogRef.Namespace, o.Spec.Type = "platform", configbutler.EnvironmentBranch
			o.Status.AppliedRevision, o.Status.ChangedWorkloadCount = 41, 3
			o.Status.WorkloadsReady.Ready = 4
		}),
		row("busy", func(o *configbutler.Environment) {
			o.Status.ActiveSyncs = []string{"busy-bcdfg", "busy-fghjk"}
			o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSyncing, Status: metav1.ConditionTrue}}
		}),
	}
}

func dependencyRows() []configbutler.EnvironmentDependency {
	row := func(of configbutler.DependencyType, name string,
		change func(*configbutler.EnvironmentDependencyRecord)) configbutler.EnvironmentDependency {
		record := configbutler.EnvironmentDependencyRecord{
			Environment: "alice", Type: of,
			Source: configbutler.NamespacedObjectReference{Namespace: "production", Name: name},
			Target: configbutler.NamespacedObjectReference{Namespace: "shop-alice", Name: name},
			Hash:   "hmac-sha256:1f2e3d", Keys: []string{"HOST", "PORT"}, LastDiscoveredAt: new(before(5 * time.Minute)),
			ReferredBy: []configbutler.DependencyReference{
				{Kind: "Deployment", Name: "web", Field: "/spec/template/spec/volumes[name=config]/configMap/name"},
				{Kind: "Deployment", Name: "web", Field: "/spec/template/spec/containers[name=web]/envFrom/0/configMapRef/name"},
				{Kind: "StatefulSet", Name: "db", Field: "/spec/template/spec/volumes[name=config]/configMap/name"},
			},
		}
		change(&record)
		meta := named(v1alpha1.EnvironmentDependencyName("alice", v1alpha1.DependencyType(of), name), 26*time.Hour)
		return configbutler.EnvironmentDependency{ObjectMeta: meta, Status: record}
	}
	missing := func(r *configbutler.EnvironmentDependencyRecord) { r.Missing, r.Hash, r.Keys = true, "", nil }
	return []configbutler.EnvironmentDependency{
		row("ConfigMap", "app", func(*configbutler.EnvironmentDependencyRecord) {}),
		row("Secret", "db", func(r *configbutler.EnvironmentDependencyRecord) { r.Missing = true }),
		row("Secret", "extra", func(r *configbutler.EnvironmentDependencyRecord) {
			missing(r)
			r.Optional, r.ReferredBy = true, r.ReferredBy[:1]
		}),
		row("ServiceAccount", "web", missing),
		row("ConfigMap", "changed", func(r *configbutler.EnvironmentDependencyRecord) { r.SeenHash = "0f" }),
		row("Service", "removed", func(r *configbutler.EnvironmentDependencyRecord) { r.SeenHash = v1alpha1.SeenRemoved }),
	}
}
