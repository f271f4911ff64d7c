// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:onlyVerbs=get,list,watch,delete,deleteCollection
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogWorkload records the content of one workload in an AppCatalog. Its name is <catalog>.<kind in lower
// case>.<name>, and it is deleted with the catalog. The server writes it; it can be read and deleted, but not created or
// changed.
type CatalogWorkload struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// status is the record.
	// +optional
	Status CatalogWorkloadRecord `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CatalogWorkloadList is a list of CatalogWorkloads.
type CatalogWorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the objects.
	Items []CatalogWorkload `json:"items"`
}

// CatalogWorkloadRecord is the content of a workload in a catalog, and its last observed state in the source.
type CatalogWorkloadRecord struct {
	// kind of the workload.
	Kind WorkloadKind `json:"kind"`
	// name of the workload.
	Name string `json:"name"`
	// revision is the catalog's revision that last changed the workload.
	Revision int64 `json:"revision"`
	// hash identifies the offered content. Equal content has the same hash.
	// +optional
	Hash string `json:"hash,omitempty"`
	// capturedAt is when the offered content was read from the source.
	// +optional
	CapturedAt *metav1.Time `json:"capturedAt,omitempty"`
	// manifest is the captured workload, without fields that the cluster adds and that the catalog ignores. Absent if it
	// exceeds 512 KiB; it is then read from the source when needed.
	// +optional
	Manifest *runtime.RawExtension `json:"manifest,omitempty"`
	// rendered is the manifest with the catalog's patches, which environments get. Absent if no patch changes it, and if
	// manifest is absent.
	// +optional
	Rendered *runtime.RawExtension `json:"rendered,omitempty"`
	// source is the last observed state in the source. It is ahead of the manifest while the catalog is pinned or only
	// previews.
	// +optional
	Source SourceObservation `json:"source,omitempty"`
	// missing means that the source does not have the workload. It stays in the catalog, as it was last seen, until an
	// editor removes it.
	// +optional
	Missing bool `json:"missing,omitempty"`
	// missingSince is when the workload was first found missing.
	// +optional
	MissingSince *metav1.Time `json:"missingSince,omitempty"`
}

// SourceObservation is the last observed state of a workload in the source of its catalog.
type SourceObservation struct {
	// namespace of the workload.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// apiVersion is the version in which it was read.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// uid of the workload.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// resourceVersion of the workload.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// hash identifies the content of the fields that count as a change.
	// +optional
	Hash string `json:"hash,omitempty"`
}
