// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

func environments() kind[*configbutler.Environment, configbutler.EnvironmentSpec, configbutler.EnvironmentStatus] {
	type obj = *configbutler.Environment
	return kind[obj, configbutler.EnvironmentSpec, configbutler.EnvironmentStatus]{
		plural: "environments", singular: "environment", shortNames: []string{"envt"}, namespaced: true,
		newObject:             func() obj { return &configbutler.Environment{} },
		newList:               func() runtime.Object { return &configbutler.EnvironmentList{} },
		spec:                  func(o obj) *configbutler.EnvironmentSpec { return &o.Spec },
		status:                func(o obj) *configbutler.EnvironmentStatus { return &o.Status },
		validate:              validation.ValidateEnvironment,
		validateUpdate:        validation.ValidateEnvironmentUpdate,
		validateStatusUpdate:  validation.ValidateEnvironmentStatusUpdate,
		validateStatusRequest: validation.ValidateEnvironmentStatusRequest,
		edits:                 environmentEdits(),
		derive:                func(o obj) { o.Status.State = environmentState(o) },
		selectable:            map[string]func(obj) string{v1alpha1.EnvironmentStateField: func(o obj) string { return o.Status.State }},
		columns: []column[obj]{
			textColumn("Catalog", "The AppCatalog that it is built from.", func(o obj) string {
				return reference(o.Spec.CatalogRef.Namespace, o.Spec.CatalogRef.Name)
			}),
			textColumn("Type", "How much of the catalog it holds.", func(o obj) string { return string(o.Spec.Type) }),
			textColumn("Auto", "Whether changes are applied as they come.", automation),
			textColumn("Namespace", "The namespace that is built.", func(o obj) string { return o.Spec.TargetNamespace }),
			textColumn("State", "Summary of the status, in a sentence.", environmentState),
			numberColumn("Revision", "The catalog's revision that it holds; 0 before it holds any.", func(o obj) int64 {
				return o.Status.AppliedRevision
			}),
			wide(textColumn("Ready", "Workloads that run as they should, of those that it holds.", readyWorkloads)),
			wide(agoColumn("Last-Sync", "Time since workloads were brought to what the catalog offers.", func(o obj) *metav1.Time {
				return o.Status.LastCatalogSyncedAt
			})),
			wide(agoColumn("Last-Refresh", "Time since what workloads refer to was brought to what it is in the source.", func(o obj) *metav1.Time {
				return o.Status.LastDependencySyncedAt
			})),
			wide(numberColumn("Offered", "The catalog's revision that is on offer.", func(o obj) int64 { return o.Status.LatestRevision })),
			wide(textColumn("Waits-For", "What it waits for until it is in sync, in a word; you, if a user has to act.", environmentWaitsFor)),
			wide(textColumn("Reason", "Why it is ready or not, in one word.", func(o obj) string {
				return readyCondition(o.Status.Conditions).Reason
			})),
			wide(textColumn("Record", "The SyncStatuses of what is being done or waits, or else of what the catalog offers.", recordsOf)),
			ageColumn[obj](),
		},
	}
}

// automation returns how an environment handles changes automatically, in one word.
func automation(o *configbutler.Environment) string {
	switch {
	case !o.Spec.AutoSync:
		return "no"
	case o.Spec.Shadow:
		return "shadow"
	}
	return "yes"
}

// environmentState returns an environment's status.state, which is also shown in tables and messages.
func environmentState(o *configbutler.Environment) string {
	environment, err := versionedEnvironment(o)
	if err != nil {
		return "" // what is stored has been converted before
	}
	return printable.Text(summary.Environment(environment))
}

// environmentWaitsFor returns what an environment waits for until it is in sync, for tables.
func environmentWaitsFor(o *configbutler.Environment) string {
	environment, err := versionedEnvironment(o)
	if err != nil {
		return "unknown" // Nothing would say that it is in sync.
	}
	return summary.WaitsFor(environment)
}

// versionedEnvironment converts an environment to v1alpha1. The result shares data with the given environment.
func versionedEnvironment(environment *configbutler.Environment) (*v1alpha1.Environment, error) {
	out := &v1alpha1.Environment{}
	if err := v1alpha1.Convert_configbutler_Environment_To_v1alpha1_Environment(environment, out, nil); err != nil {
		return nil, fmt.Errorf("converting Environment %s/%s: %w", environment.Namespace, environment.Name, err)
	}
	return out, nil
}

// readyWorkloads formats the number of ready workloads, as in 3/5.
func readyWorkloads(o *configbutler.Environment) string {
	ready := o.Status.WorkloadsReady
	if ready == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", ready.Ready, ready.Total)
}

func recordsOf(o *configbutler.Environment) string {
	if active := o.Status.ActiveSyncs; len(active) > 0 {
		return strings.Join(active, ",")
	}
	return o.Status.LatestCatalogSync
}

func environmentDependencies() kind[*configbutler.EnvironmentDependency, struct{}, configbutler.EnvironmentDependencyRecord] {
	type obj = *configbutler.EnvironmentDependency
	return kind[obj, struct{}, configbutler.EnvironmentDependencyRecord]{
		plural: "environmentdependencies", singular: "environmentdependency", shortNames: []string{"envdep"}, namespaced: true,
		newObject:      func() obj { return &configbutler.EnvironmentDependency{} },
		newList:        func() runtime.Object { return &configbutler.EnvironmentDependencyList{} },
		validate:       validation.ValidateEnvironmentDependency,
		validateUpdate: validation.ValidateEnvironmentDependencyUpdate,
		columns: []column[obj]{
			textColumn("Type", "What it is.", func(o obj) string { return string(o.Status.Type) }),
			textColumn("Source", "What is copied.", func(o obj) string { return reference(o.Status.Source.Namespace, o.Status.Source.Name) }),
			textColumn("Target", "The copy.", func(o obj) string { return reference(o.Status.Target.Namespace, o.Status.Target.Name) }),
			textColumn("Referred-By", "What refers to it.", func(o obj) string { return abbreviateList(referrers(o), 0) }),
			textColumn("State", "Summary of the status, in a sentence.", dependencyState),
			wide(numberColumn("Keys", "What a ConfigMap or Secret holds.", func(o obj) int64 { return int64(len(o.Status.Keys)) })),
			wide(textColumn("Environment", "The Environment that it belongs to.", func(o obj) string { return o.Status.Environment })),
			wide(agoColumn("Discovered", "Time since it was last found to be referred to.", func(o obj) *metav1.Time {
				return o.Status.LastDiscoveredAt
			})),
			ageColumn[obj](),
		},
	}
}

// referrers returns the objects that refer to a dependency without duplicates. Equal referrers are adjacent.
func referrers(o *configbutler.EnvironmentDependency) []string {
	names := make([]string, len(o.Status.ReferredBy))
	for i, by := range o.Status.ReferredBy {
		names[i] = by.Kind + "/" + by.Name
	}
	return slices.Compact(names)
}

// dependencyState returns the state of a dependency's copy, for tables.
func dependencyState(o *configbutler.EnvironmentDependency) string {
	switch status := &o.Status; {
	case status.Missing && status.Hash != "":
		return "Missing in the source, the copy stays"
	case status.Missing && status.Optional:
		return "Missing in the source, not required"
	case status.Missing:
		return "Missing in the source"
	case status.SeenHash == v1alpha1.SeenRemoved:
		return "Removed in the source, the copy stays"
	case status.SeenHash != "":
		return "Changed in the source"
	}
	return "Copied"
}
