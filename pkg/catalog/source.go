// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// reference is the kind and name of a workload.
type reference = v1alpha1.WorkloadReference

// sourceState is the observed state of the workloads of a source namespace.
type sourceState struct {
	// objects are those that exist.
	objects map[reference]*unstructured.Unstructured
	// complete is true if all workloads were read, and false if only those of read were.
	complete bool
	read     sets.Set[reference]
	// unknown are the kinds that could not be read, because discovery is uncertain about them.
	unknown sets.Set[v1alpha1.WorkloadKind]
}

// covers reports whether the state of a workload was observed. If it was and is not in objects, the workload does not exist.
func (s sourceState) covers(workload reference) bool {
	return !s.unknown.Has(workload.Kind) && (s.complete || s.read.Has(workload))
}
