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

// remedyOfCatalog is the way out where no change of the catalog is one.
const remedyOfCatalog = "or leave the catalog to a user who may read the source"

// OfCatalog is to read what a catalog shows of its source to whoever may read the catalog or use it for an environment. Who
// writes the catalog consents to that.
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

// referred is how objects are read that workloads refer to, by their type. Those of other types come with what refers to them.
var referred = map[v1alpha1.DependencyType]struct{ verb, resource string }{
	v1alpha1.DependencyConfigMap: {"list", "configmaps"},
	v1alpha1.DependencyService:   {"list", "services"},
	v1alpha1.DependencySecret:    {"get", "secrets"},
}

// readsReferred is to read the objects of a type in the source of a catalog.
func readsReferred(spec *v1alpha1.AppCatalogSpec, of v1alpha1.DependencyType) Permission {
	read := referred[of]
	return Permission{
		Verbs: []string{read.verb}, Namespace: spec.SourceNamespace, Resources: []string{read.resource}, Cause: onBehalf, Remedy: remedyOfCatalog,
	}
}

// OfCopies is to read what environments of a catalog copy because its editor consents to that, by type. Secrets are among it if they
// are shared; otherwise the requester of a sync must be allowed to read them.
func OfCopies(catalog *v1alpha1.AppCatalog) map[v1alpha1.DependencyType]Permission {
	permissions := map[v1alpha1.DependencyType]Permission{}
	for of := range referred {
		if of != v1alpha1.DependencySecret || catalog.Spec.Secrets == v1alpha1.CatalogSecretsShared {
			permissions[of] = readsReferred(&catalog.Spec, of)
		}
	}
	return permissions
}

// remedyWithout says whether a catalog can show workloads of a kind, and how it would show none. A selector is about
// every kind.
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

// CatalogShowsNoMore says whether a catalog shows nothing that it did not show before, to nobody else. Everything counts but
// what is left out here: when changes of the source are taken over, how many revisions are kept and which of them is
// offered; that changes are only shown; workloads that are taken out; and Secrets that are shared no longer.
//
// Patches count. They can make a workload refer to what it did not, and what it refers to is copied.
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
