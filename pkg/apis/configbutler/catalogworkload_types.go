// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogWorkload records the content of one workload in an AppCatalog. Its name is <catalog>.<kind in lower
// case>.<name>, and it is deleted with the catalog. The server writes it; it can be read and deleted, but not created or
// changed.
type CatalogWorkload struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status CatalogWorkloadRecord
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogWorkloadList is a list of CatalogWorkloads.
type CatalogWorkloadList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []CatalogWorkload
}

// CatalogWorkloadRecord is the content of a workload in a catalog, and its last observed state in the source.
type CatalogWorkloadRecord struct {
	Kind         WorkloadKind
	Name         string
	Revision     int64
	Hash         string
	CapturedAt   *metav1.Time
	Manifest     *runtime.RawExtension
	Rendered     *runtime.RawExtension
	Source       SourceObservation
	Missing      bool
	MissingSince *metav1.Time
}

// SourceObservation is the last observed state of a workload in the source of its catalog.
type SourceObservation struct {
	Namespace       string
	APIVersion      string
	UID             types.UID
	ResourceVersion string
	Hash            string
}
