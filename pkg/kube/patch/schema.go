// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	patchDirective      = "$patch"
	retainKeysDirective = "$retainKeys"
	mergeStrategy       = "merge"
	replaceStrategy     = "replace"
)

// checkFit returns an error for the parts of a strategic merge patch that a type does not have, or has in another
// shape.
func checkFit(part map[string]any, gvk schema.GroupVersionKind) error {
	typed, err := scheme.Scheme.New(gvk)
	if err != nil {
		return err
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return err
	}
	if err := checkMap(nil, part, meta); err != nil {
		return err
	}
	plain := stripped(runtime.DeepCopyJSON(part))
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(plain, typed, true)
	if err == nil {
		return nil
	}
	if unknown, ok := runtime.AsStrictDecodingError(err); ok {
		return fmt.Errorf("must fit %s of %s: %s", gvk.Kind, gvk.GroupVersion(), summarize(unknown.Errors()[0]))
	}
	// Only errors of unknown fields name the field. Others may quote a value.
	at := firstMisfit(nil, plain, func(part map[string]any) bool {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(part, typed) == nil
	})
	return fmt.Errorf("must fit %s of %s: %s is of another type there", gvk.Kind, gvk.GroupVersion(), at)
}

// firstMisfit returns the first field that does not fit, by trying each alone. It returns nil if each fits.
func firstMisfit(path *field.Path, part map[string]any, fits func(map[string]any) bool) *field.Path {
	for _, name := range slices.Sorted(maps.Keys(part)) {
		alone := func(value any) bool { return fits(map[string]any{name: value}) }
		if alone(part[name]) {
			continue
		}
		return cmp.Or(misfitWithin(path.Child(name), part[name], alone), path.Child(name))
	}
	return nil
}

func misfitWithin(path *field.Path, value any, fits func(any) bool) *field.Path {
	switch value := value.(type) {
	case map[string]any:
		if !fits(map[string]any{}) {
			return nil
		}
		return firstMisfit(path, value, func(part map[string]any) bool { return fits(part) })
	case []any:
		if !fits([]any{}) {
			return nil
		}
		for i, item := range value {
			alone := func(item any) bool { return fits([]any{item}) }
			if !alone(item) {
				return cmp.Or(misfitWithin(path.Index(i), item, alone), path.Index(i))
			}
		}
	}
	return nil
}

// checkMap checks what the conversion to the type does not: directives, and the keys of list items.
func checkMap(path *field.Path, part map[string]any, meta strategicpatch.LookupPatchMeta) error {
	for _, name := range slices.Sorted(maps.Keys(part)) {
		at := path.Child(name)
		if strings.HasPrefix(name, "$") {
			if err := checkDirective(name, part[name]); err != nil {
				return fmt.Errorf("%s %w", at, err)
			}
			continue
		}
		if err := checkValue(at, name, part[name], meta); err != nil {
			return err
		}
	}
	return nil
}

func checkDirective(name string, value any) error {
	switch name {
	case patchDirective:
		if value != "replace" && value != "delete" {
			return errors.New("must be replace or delete")
		}
	case retainKeysDirective:
		keys, _ := value.([]any)
		if len(keys) == 0 || slices.ContainsFunc(keys, func(key any) bool { return reflect.TypeOf(key) != reflect.TypeFor[string]() }) {
			return errors.New("must be a list of the names of fields")
		}
	default:
		return errors.New("is not taken: the directives are $patch and $retainKeys")
	}
	return nil
}

func checkValue(path *field.Path, name string, value any, meta strategicpatch.LookupPatchMeta) error {
	switch value := value.(type) {
	case map[string]any:
		inner, found, err := meta.LookupPatchMetadataForStruct(name)
		if err != nil || slices.Contains(found.GetPatchStrategies(), replaceStrategy) {
			return checkPlain(path, value)
		}
		return checkMap(path, value, inner)
	case []any:
		return checkList(path, name, value, meta)
	}
	return nil
}

func checkList(path *field.Path, name string, items []any, meta strategicpatch.LookupPatchMeta) error {
	inner, found, err := meta.LookupPatchMetadataForSlice(name)
	if err != nil || !slices.Contains(found.GetPatchStrategies(), mergeStrategy) {
		return checkPlain(path, items)
	}
	for i, item := range items {
		if err := checkItem(path.Index(i), item, inner, found.GetPatchMergeKey()); err != nil {
			return err
		}
	}
	return nil
}

func checkItem(path *field.Path, item any, meta strategicpatch.LookupPatchMeta, key string) error {
	switch item := item.(type) {
	case nil, []any:
		return fmt.Errorf("%s must be neither null nor a list", path)
	case map[string]any:
		replaces := item[patchDirective] == "replace"
		if !replaces && !isScalar(item[key]) {
			return fmt.Errorf("%s must have %s, by which it is found", path, key)
		}
		return checkMap(path, item, meta)
	}
	return nil
}

func isScalar(value any) bool {
	switch value.(type) {
	case nil, map[string]any, []any:
		return false
	}
	return true
}

// checkPlain rejects directives where nothing is merged, because they would remain in the object.
func checkPlain(path *field.Path, value any) error {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if strings.HasPrefix(name, "$") {
				return fmt.Errorf("%s is not taken where a field is replaced as a whole", path.Child(name))
			}
			if err := checkPlain(path.Child(name), value[name]); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range value {
			if err := checkPlain(path.Index(i), item); err != nil {
				return err
			}
		}
	}
	return nil
}

// stripped removes directives from an object in place: the library leaves some of them where there was nothing to merge
// with. It removes whatever is marked as deleted as a whole.
func stripped(fields map[string]any) map[string]any {
	for name, value := range fields {
		if name == patchDirective || name == retainKeysDirective || isDeleted(value) {
			delete(fields, name)
			continue
		}
		fields[name] = strippedValue(value)
	}
	return fields
}

func strippedValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return stripped(value)
	case []any:
		items := slices.DeleteFunc(value, isDeleted)
		for i, item := range items {
			items[i] = strippedValue(item)
		}
		return items
	}
	return value
}

func isDeleted(value any) bool {
	fields, ok := value.(map[string]any)
	return ok && fields[patchDirective] == "delete"
}
