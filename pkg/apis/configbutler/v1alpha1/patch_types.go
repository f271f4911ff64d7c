// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Patch changes every object that its target matches.
type Patch struct {
	// target selects the objects to patch.
	Target PatchTarget `json:"target"`
	// type is the format of the patch. StrategicMerge: a part of the object, in which items of lists are identified by
	// their keys, as in kubectl patch; for kinds that are built into Kubernetes. JSON6902: a list of operations (RFC
	// 6902). Merge: a part of the object, in which lists are replaced as a whole (RFC 7386). Defaults to StrategicMerge.
	// +optional
	// +default=ref(PatchStrategicMerge)
	Type PatchType `json:"type,omitempty"`
	// patch is the patch as YAML or JSON, at most 64 KiB. It cannot change the identity of an object (apiVersion, kind,
	// name, namespace, and other metadata that the cluster writes), nor its status.
	Patch string `json:"patch"`
}

// PatchTarget selects objects. All given fields must match.
type PatchTarget struct {
	// group is the API group, with "" for the core group. Absent means every group.
	// +optional
	Group *string `json:"group,omitempty"`
	// kind of the objects, such as Deployment.
	Kind string `json:"kind"`
	// name of the object. Empty means every name.
	// +optional
	Name string `json:"name,omitempty"`
	// labelSelector matches the labels of the objects. Absent means any labels. It has at most 500 labels, expressions and
	// values.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// PatchType is the format of a patch.
//
// +enum
type PatchType string

const (
	// PatchStrategicMerge is a part of an object, with lists merged by the keys of their items.
	PatchStrategicMerge PatchType = "StrategicMerge"
	// PatchJSON6902 is a list of operations.
	PatchJSON6902 PatchType = "JSON6902"
	// PatchMerge is a part of an object, with lists replaced.
	PatchMerge PatchType = "Merge"
)
