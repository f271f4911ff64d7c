// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// showsNoMore says whether a catalog shows nothing that it did not show before, to nobody else. Everything counts but
// what is left out here: when changes of the source are taken over, how many revisions are kept and which of them is
// offered; workloads that are taken out; and Secrets that are shared no longer.
//
// Patches count. They can make a workload refer to what it did not, and what it refers to is copied.
func showsNoMore(spec, before *v1alpha1.AppCatalogSpec) bool {
	was := before.DeepCopy()
	was.PauseUntil, was.PreviewOnly = spec.PauseUntil, spec.PreviewOnly
	was.PinnedRevision, was.HistoryLimit = spec.PinnedRevision, spec.HistoryLimit
	was.Workloads = slices.DeleteFunc(was.Workloads, func(workload v1alpha1.WorkloadReference) bool {
		return !slices.Contains(spec.Workloads, workload)
	})
	if spec.Secrets == v1alpha1.CatalogSecretsRequester {
		was.Secrets = spec.Secrets
	}
	return equality.Semantic.DeepEqual(spec, was)
}
