// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// remedyOfCatalog is the way out where no change of the catalog is one.
const remedyOfCatalog = "or leave the catalog to somebody who may read the source"

// showsNoMore says whether a catalog shows nothing that it did not show before, to nobody else. Everything counts but
// what is left out here: when changes of the source are taken over, how many revisions are kept and which of them is
// offered; workloads that are taken out; and Secrets that are shared no longer.
//
// Patches count. They can make a workload refer to what it did not, and what it refers to is copied.
func showsNoMore(spec, before *configbutler.AppCatalogSpec) bool {
	was := before.DeepCopy()
	was.PauseUntil, was.PreviewOnly = spec.PauseUntil, spec.PreviewOnly
	was.PinnedRevision, was.HistoryLimit = spec.PinnedRevision, spec.HistoryLimit
	was.Workloads = slices.DeleteFunc(was.Workloads, func(workload configbutler.WorkloadReference) bool {
		return !slices.Contains(spec.Workloads, workload)
	})
	if spec.Secrets == configbutler.CatalogSecretsRequester {
		was.Secrets = spec.Secrets
	}
	return equality.Semantic.DeepEqual(spec, was)
}

// shownBy is what a catalog shows of its source to whoever may read the catalog or use it for an environment. Who writes
// the catalog consents to that, and so must be allowed to read it.
func shownBy(catalog *configbutler.AppCatalog) []need {
	spec := &catalog.Spec
	may := func(verb string, resource schema.GroupResource, remedy string) need {
		return need{
			verbs: []string{verb}, namespace: spec.SourceNamespace, group: resource.Group, resource: resource.Resource,
			cause: onBehalf, remedy: remedy,
		}
	}
	var needs []need
	resources := v1alpha1.WorkloadResources()
	for _, kind := range slices.Sorted(maps.Keys(resources)) {
		if remedy, shown := remedyWithout(kind, spec); shown {
			needs = append(needs, may("list", resources[kind], remedy))
		}
	}
	return append(needs,
		may("list", schema.GroupResource{Resource: "configmaps"}, remedyOfCatalog),
		may("list", schema.GroupResource{Resource: "services"}, remedyOfCatalog),
		may("get", schema.GroupResource{Resource: "secrets"}, remedyOfCatalog))
}

// remedyWithout says whether a catalog can show workloads of a kind, and how it would show none. A selector is about
// every kind.
func remedyWithout(kind v1alpha1.WorkloadKind, spec *configbutler.AppCatalogSpec) (remedy string, shown bool) {
	named := slices.ContainsFunc(spec.Workloads, func(workload configbutler.WorkloadReference) bool {
		return string(workload.Kind) == string(kind)
	})
	switch {
	case spec.WorkloadSelector != nil:
		return "or name workloads of kinds that you may read in spec.workloads and leave out spec.workloadSelector", true
	case named:
		return fmt.Sprintf("or leave workloads of kind %s out of spec.workloads", kind), true
	}
	return "", false
}
