// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// otherChangesHash computes Plan.OtherChangesHash.
func otherChangesHash(hasher Hasher, steps []Step, base map[Key]*unstructured.Unstructured) (string, error) {
	var lines []string
	for i := range steps {
		s := &steps[i]
		if s.Action != v1alpha1.SyncActionCatalog || s.ChangeType() == "" || s.isWorkload() || !isChanged(base[s.Key], s.Desired) {
			continue
		}
		hash := ""
		if s.Desired != nil {
			var err error
			if hash, err = Hash(hasher, s.Desired); err != nil {
				return "", err
			}
		}
		lines = append(lines, fmt.Sprintf("%s %s %s", s.Verb, s.Key, hash))
	}
	if len(lines) == 0 {
		return "", nil
	}
	return hasher.Sum("news", []byte(strings.Join(lines, "\n"))), nil
}

// isChanged reports whether a desired object differs from its base.
func isChanged(base, desired *unstructured.Unstructured) bool {
	if desired == nil || base == nil {
		return desired != base
	}
	before, after := base.DeepCopy(), desired.DeepCopy()
	for _, object := range []*unstructured.Unstructured{before, after} {
		unstructured.RemoveNestedField(object.Object, "metadata", "labels", v1alpha1.LabelRevision)
	}
	return !reflect.DeepEqual(before.Object, after.Object)
}
