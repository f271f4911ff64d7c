// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Patch changes every object that its target matches.
type Patch struct {
	Target PatchTarget
	Type   PatchType
	Patch  string
}

// PatchTarget selects objects. All given fields must match.
type PatchTarget struct {
	Group         *string
	Kind          string
	Name          string
	LabelSelector *metav1.LabelSelector
}

// PatchType is the format of a patch.
type PatchType string

const (
	// PatchStrategicMerge is a part of an object, with lists merged by the keys of their items.
	PatchStrategicMerge PatchType = "StrategicMerge"
	// PatchJSON6902 is a list of operations.
	PatchJSON6902 PatchType = "JSON6902"
	// PatchMerge is a part of an object, with lists replaced.
	PatchMerge PatchType = "Merge"
)
