// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
)

// strategic is a strategic merge patch.
type strategic map[string]any

var _ change = strategic{}

func readStrategic(document any, target Target) (change, error) {
	part, ok := document.(map[string]any)
	if !ok {
		return nil, errNotAPart
	}
	if err := checkPart(part); err != nil {
		return nil, err
	}
	for _, directive := range []string{patchDirective, retainKeysDirective} {
		if _, ok := part[directive]; ok {
			return nil, errImmutable("the object as a whole")
		}
	}
	return strategic(part), checkFits(part, target)
}

// checkFits requires the patch to fit at least one of the types that the target can mean. The error is about the first
// type.
func checkFits(part map[string]any, target Target) error {
	types := typesOf(target)
	if len(types) == 0 {
		return errNotBuiltIn(target.Kind)
	}
	var first error
	for _, gvk := range types {
		err := checkFit(part, gvk)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

func errNotBuiltIn(kind string) error {
	return fmt.Errorf("must be of type Merge or JSON6902: %s is not built into Kubernetes, and strategic merge is for kinds that are", kind)
}

// typesOf returns the built-in types that a target can mean, the most stable version first.
func typesOf(target Target) []schema.GroupVersionKind {
	var types []schema.GroupVersionKind
	for _, gv := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		gvk := gv.WithKind(target.Kind)
		if (target.Group == nil || *target.Group == gv.Group) && scheme.Scheme.Recognizes(gvk) {
			types = append(types, gvk)
		}
	}
	slices.SortFunc(types, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(version.CompareKubeAwareVersionStrings(b.Version, a.Version), cmp.Compare(a.Group, b.Group))
	})
	return types
}

func (s strategic) apply(object *unstructured.Unstructured, _ *byteCount) (map[string]any, error) {
	gvk := object.GroupVersionKind()
	typed, err := scheme.Scheme.New(gvk)
	if err != nil {
		return nil, errNotBuiltIn(gvk.Kind)
	}
	if err := checkFit(s, gvk); err != nil {
		return nil, err
	}
	// The library panics on some objects that do not fit the type.
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed) != nil {
		return nil, fmt.Errorf("the object is not of the shape of a %s of %s", gvk.Kind, gvk.GroupVersion())
	}
	before, part := object.DeepCopy().Object, runtime.DeepCopyJSON(s)
	after, err := strategicpatch.StrategicMergeMapPatch(before, part, typed)
	if err != nil {
		return nil, errors.New("cannot be merged into what the object has there; $retainKeys must name every field that the patch sets beside it")
	}
	return stripped(after), nil
}
