// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/merge"
)

// isSettled reports whether a merge would leave an object as it is, apart from its revision: what is desired was applied before, no patch of
// the environment changes it, applying it changes nothing, and the environment owns no other fields. This is so for most objects of most
// plans, and is found with a third of the comparisons of a merge. An object that is not settled can still be as it should be.
func (m *objectMerger) isSettled(ctx context.Context, v merge.Versions) (bool, error) {
	if v.Base == nil || !reflect.DeepEqual(withoutRevision(v.Base), withoutRevision(v.Desired)) || !isUnpatched(v) {
		return false, nil
	}
	touched, err := m.merger.Touched(ctx, v.Live, v.Desired)
	return err == nil && touched.Difference(revisionLabel).Empty(), err
}

// isUnpatched reports whether an object has only the labels of the environment in addition to its copy, and maybe labels that patches add.
func isUnpatched(v merge.Versions) bool {
	labels := v.Desired.GetLabels()
	for name, value := range v.Unpatched.GetLabels() {
		if has, ok := labels[name]; !ok || has != value {
			return false
		}
	}
	return reflect.DeepEqual(withoutLabels(v.Unpatched), withoutLabels(v.Desired))
}

// withoutLabels returns the content of an object without its labels. It shares the rest with the object.
func withoutLabels(object *unstructured.Unstructured) map[string]any {
	content := maps.Clone(object.Object)
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	delete(metadata, "labels")
	content["metadata"] = metadata
	return content
}

// withoutRevision returns the content of an object without the label with its revision. It shares the rest with the object.
func withoutRevision(object *unstructured.Unstructured) map[string]any {
	metadata, _ := object.Object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if _, has := labels[v1alpha1.LabelRevision]; !has {
		return object.Object
	}
	content := maps.Clone(object.Object)
	metadata, labels = maps.Clone(metadata), maps.Clone(labels)
	delete(labels, v1alpha1.LabelRevision)
	metadata["labels"], content["metadata"] = labels, metadata
	return content
}
