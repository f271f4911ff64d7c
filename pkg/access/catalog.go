// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// remedyOfCatalog is the remedy if no change of the catalog removes the need for the permission.
const remedyOfCatalog = "or leave the catalog to a user who may read the source"

// OfCatalog returns the permissions to read what a catalog shows of its source. Every user who may read the catalog, or use it for an
// environment, sees that. The editor of the catalog consents to it.
func OfCatalog(catalog *v1alpha1.AppCatalog) []Permission {
	spec := &catalog.Spec
	var permissions []Permission
	resources := v1alpha1.WorkloadResources()
	for _, kind := range slices.Sorted(maps.Keys(resources)) {
		if remedy, shown := remedyWithout(kind, spec); shown {
			permissions = append(permissions, Permission{
				Verbs: []string{"list"}, Namespace: spec.SourceNamespace, Group: resources[kind].Group, Resources: []string{resources[kind].Resource},
				Cause: onBehalf, Remedy: remedy,
			})
		}
	}
	return append(permissions, readsReferred(spec, v1alpha1.DependencyConfigMap),
		readsReferred(spec, v1alpha1.DependencyService), readsReferred(spec, v1alpha1.DependencySecret))
}

// referred has the verb and the resource with which objects that workloads refer to are read, by their type. Objects of other types are
// found through these.
var referred = map[v1alpha1.DependencyType]struct{ verb, resource string }{
	v1alpha1.DependencyConfigMap: {"list", "configmaps"},
	v1alpha1.DependencyService:   {"list", "services"},
	v1alpha1.DependencySecret:    {"get", "secrets"},
}

// readsReferred returns the permission to read the objects of a type in the source of a catalog.
func readsReferred(spec *v1alpha1.AppCatalogSpec, of v1alpha1.DependencyType) Permission {
	read := referred[of]
	return Permission{
		Verbs: []string{read.verb}, Namespace: spec.SourceNamespace, Resources: []string{read.resource}, Cause: onBehalf, Remedy: remedyOfCatalog,
	}
}

// OfCopies returns, by type, the permissions to read what environments of a catalog copy with the consent of its editor. They include
// Secrets only if the catalog shares them. Otherwise the requester of a sync must be allowed to read them.
func OfCopies(catalog *v1alpha1.AppCatalog) map[v1alpha1.DependencyType]Permission {
	permissions := map[v1alpha1.DependencyType]Permission{}
	for of := range referred {
		if of != v1alpha1.DependencySecret || catalog.Spec.Secrets == v1alpha1.CatalogSecretsShared {
			permissions[of] = readsReferred(&catalog.Spec, of)
		}
	}
	return permissions
}

// remedyWithout reports whether a catalog can show workloads of a kind, and returns the change with which it would show none. A selector
// can match every kind.
func remedyWithout(kind v1alpha1.WorkloadKind, spec *v1alpha1.AppCatalogSpec) (remedy string, shown bool) {
	named := slices.ContainsFunc(spec.Workloads, func(workload v1alpha1.WorkloadReference) bool { return workload.Kind == kind })
	switch {
	case spec.WorkloadSelector != nil:
		return "or name workloads of kinds that you may read in spec.workloads and leave out spec.workloadSelector", true
	case named:
		return fmt.Sprintf("or leave workloads of kind %s out of spec.workloads", kind), true
	}
	return "", false
}

// CatalogShowsNoMore reports whether a change of a catalog shows nothing new, and shows nothing to more users. Every change of the spec
// counts except these: when the catalog takes changes of its source, how many revisions it keeps and which one it offers; previewOnly being
// set; workloads being removed; and Secrets no longer being shared.
//
// Changes of patches count, because a patch can make a workload refer to other objects, which are then copied.
func CatalogShowsNoMore(spec, before *v1alpha1.AppCatalogSpec) bool {
	was := before.DeepCopy()
	was.PauseUntil, was.PinnedRevision, was.HistoryLimit = spec.PauseUntil, spec.PinnedRevision, spec.HistoryLimit
	if spec.PreviewOnly {
		was.PreviewOnly = true
	}
	was.Workloads = slices.DeleteFunc(was.Workloads, func(workload v1alpha1.WorkloadReference) bool {
		return !slices.Contains(spec.Workloads, workload)
	})
	if spec.Secrets == v1alpha1.CatalogSecretsRequester {
		was.Secrets = spec.Secrets
	}
	return equality.Semantic.DeepEqual(spec, was)
}
