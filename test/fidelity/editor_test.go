// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

// editor changes an object as far as the API server accepts it.
type editor struct {
	client dynamic.ResourceInterface
	object *mirroredObject
	// edited is the object in the cluster with the accepted changes.
	edited *unstructured.Unstructured
}

func newEditor(ctx context.Context, client dynamic.ResourceInterface, o *mirroredObject) (*editor, error) {
	live, err := client.Get(ctx, o.name, metav1.GetOptions{})
	return &editor{client: client, object: o, edited: live}, err
}

// write writes the object.
func (e *editor) write(ctx context.Context) error {
	_, err := e.client.Update(ctx, e.edited, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationIgnore})
	return err
}

// try makes a change unless the API server refuses it. It returns the refusal, nil if there is none.
func (e *editor) try(ctx context.Context, change func(object map[string]any)) (refusal, err error) {
	object := e.edited.DeepCopy()
	change(object.Object)
	_, err = e.client.Update(ctx, object, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationIgnore, DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsInternalError(err) {
		return err, nil
	}
	if err == nil {
		e.edited = object
	}
	return nil, err
}

// changeFields changes each field, and adds to each map and list.
func (e *editor) changeFields(ctx context.Context) error { return e.change(ctx, edits(e.object)) }

// exchangeFields sets the fields of other objects of the type, in turn, which are often of another kind of use: a Service gets another type.
func (e *editor) exchangeFields(ctx context.Context, others []map[string]any) error {
	var out []edit
	for _, other := range others {
		for name, field := range other {
			inner, _ := field.(map[string]any)
			if len(inner) == 0 {
				out = append(out, edit{fieldPath{name}, []any{field}})
			}
			for key, value := range inner {
				out = append(out, edit{fieldPath{name, key}, []any{value}})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b edit) int { return strings.Compare(a.path.String(), b.path.String()) })
	return e.change(ctx, slices.DeleteFunc(out, func(one edit) bool {
		// An object that cannot be changed any more must be recreated, for which it must not have finalizers. Rules are aggregated some time
		// after the change, perhaps when the ClusterRole is restored already.
		at := one.path.String()
		return isIdentity(one.path) || at == "metadata.finalizers" || at == "immutable" && e.object.path != immutable || one.path[0] == "aggregationRule"
	}))
}

// change makes edits: all of them, or those that are accepted.
func (e *editor) change(ctx context.Context, edits []edit) error {
	if len(edits) == 0 {
		return nil
	}
	refusal, err := e.try(ctx, func(object map[string]any) {
		for _, one := range edits {
			one.path.set(object, runtime.DeepCopyJSONValue(one.variants[0]))
		}
	})
	switch {
	case err != nil || refusal == nil:
		return err
	case len(edits) == 1:
		return e.changeOtherwise(ctx, edits[0], refusal)
	}
	named, others := split(edits, refusal)
	if len(named) == 0 || len(others) == 0 {
		named, others = edits[:len(edits)/2], edits[len(edits)/2:]
	}
	if err := e.change(ctx, others); err != nil {
		return err
	}
	return e.change(ctx, named)
}

// changeOtherwise makes an edit in the first of its other variants that is accepted, or of those that the refusal names.
func (e *editor) changeOtherwise(ctx context.Context, one edit, refusal error) error {
	others := one.variants[1:]
	if named := supported(refusal); len(named) > 0 {
		others = slices.DeleteFunc(named, func(value any) bool { return value == one.path.get(e.edited.Object) })
	}
	for _, variant := range others {
		refusal, err := e.try(ctx, func(object map[string]any) { one.path.set(object, runtime.DeepCopyJSONValue(variant)) })
		if err != nil || refusal == nil {
			return err
		}
	}
	return nil
}

// split returns the edits of fields that a refusal names, and the others.
func split(edits []edit, refusal error) (named, others []edit) {
	var status apierrors.APIStatus
	fields := map[string]bool{}
	if errors.As(refusal, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			fields[keysAsFields.Replace(cause.Field)] = true
		}
	}
	for _, one := range edits {
		if fields[keysAsFields.Replace(one.path.String())] {
			named = append(named, one)
		} else {
			others = append(others, one)
		}
	}
	return named, others
}

// keysAsFields makes one notation of a[b] and a.b, which the API server both uses for keys of maps.
var keysAsFields = strings.NewReplacer("[", ".", "]", "")

var supportedValues = regexp.MustCompile(`supported values: ((?:"[^"]*"(?:, )?)+)`)

// supported returns the values that a refusal names as supported.
func supported(refusal error) (values []any) {
	found := supportedValues.FindStringSubmatch(refusal.Error())
	if found == nil {
		return nil
	}
	for quoted := range strings.SplitSeq(found[1], ", ") {
		values = append(values, strings.Trim(quoted, `"`))
	}
	return values
}

// removeFields removes what is in the file and can be removed.
func (e *editor) removeFields(ctx context.Context) error {
	if isDefinition(e.object) {
		return e.removeFromDefinition(ctx)
	}
	return e.remove(ctx, nil)
}

// remove removes the value at a path, or if that is refused, what can be removed of it.
func (e *editor) remove(ctx context.Context, at fieldPath) error {
	if !isIdentity(at) && !isFixed(e.object, at) {
		refusal, err := e.try(ctx, func(object map[string]any) { at.set(object, absent) })
		if err != nil || refusal == nil {
			return err
		}
	}
	switch value := at.get(e.object.content).(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if err := e.remove(ctx, at.with(name)); err != nil {
				return err
			}
		}
	case []any:
		for i := range slices.Backward(value) {
			if err := e.remove(ctx, at.with(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeFromDefinition removes all at once, because definitions are large, and each version that is not stored.
func (e *editor) removeFromDefinition(ctx context.Context) error {
	var at []fieldPath
	walk(nil, e.object.content, func(here fieldPath, _ any) {
		if !isIdentity(here) && !isFixed(e.object, here) {
			at = append(at, here)
		}
	})
	refusal, err := e.try(ctx, func(object map[string]any) {
		for _, one := range slices.Backward(at) { // The outer ones first: what is in them has gone then.
			if one.get(object) != nil {
				one.set(object, absent)
			}
		}
	})
	if err != nil || refusal != nil {
		return errors.Join(err, refusal)
	}
	versions, _ := fieldPath{"spec", "versions"}.get(e.object.content).([]any)
	for i := range slices.Backward(versions) {
		if _, err := e.try(ctx, func(object map[string]any) { fieldPath{"spec", "versions", i}.set(object, absent) }); err != nil {
			return err
		}
	}
	return nil
}
