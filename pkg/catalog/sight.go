// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// reference names a workload.
type reference = v1alpha1.WorkloadReference

// sight is what was seen of the workloads in a source.
type sight struct {
	// objects are those that are there.
	objects map[reference]*unstructured.Unstructured
	// whole says that all were looked for; otherwise those of at were.
	whole bool
	at    sets.Set[reference]
	// hidden are kinds of which nothing can be said, because discovery is uncertain about them.
	hidden sets.Set[v1alpha1.WorkloadKind]
}

// covers says whether a workload that is not among the objects is not in the source.
func (s sight) covers(workload reference) bool {
	return !s.hidden.Has(workload.Kind) && (s.whole || s.at.Has(workload))
}
