// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/merge"
)

// outcome is the result of merging a live object: either conflicts, or what to send and the predicted object.
type outcome struct {
	conflicts    []merge.Field
	removal      []byte
	apply, after *unstructured.Unstructured
	changes      []diff.Difference
}

// outcomeOf merges a live object and predicts the result.
func (m *objectMerger) outcomeOf(ctx context.Context, key Key, v merge.Versions, owner owner) (outcome, error) {
	if !m.mergeAll {
		if settled, err := m.isSettled(ctx, v); settled || err != nil {
			return outcome{}, err
		}
	}
	result, err := m.merge(ctx, key, v, owner)
	if err != nil || len(result.Conflicts) > 0 {
		return outcome{conflicts: result.Conflicts}, err
	}
	out := outcome{apply: result.Apply}
	if owner != ownerForeign && result.Touched != nil && result.Touched.Difference(revisionLabel).Empty() {
		return out, nil // A prediction of an object that stays as it is costs more than the merge.
	}
	if out.removal, err = result.RemovalPatch(v.Live); err != nil {
		return outcome{}, err
	}
	if owner == ownerForeign {
		if out.removal, err = adopt(ctx, m.merger.Schemas, v.Live, out.apply, out.removal); err != nil {
			return outcome{}, err
		}
	}
	if out.after, err = predict(ctx, m.merger.Schemas, v.Live, out.apply, out.removal); err != nil {
		return outcome{}, err
	}
	if out.changes, err = m.merger.Schemas.Compare(ctx, v.Live, out.after); err != nil || !needsReplacement(v.Live, out.changes) {
		return out, err
	}
	return replacement(ctx, m.merger.Schemas, v, out)
}

// keepServerValues keeps values that the server has made of what was written. Defaults in atomic lists and admission cause
// such differences, and would cause them again after each write. It reports whether there are any.
func keepServerValues(v *merge.Versions, changes []diff.Difference) bool {
	var settled []fieldpath.Path
	for _, change := range changes {
		if change.Change == diff.Changed && !change.Path.Equal(revisionLabelPath) && isServerValue(v, change) {
			settled = append(settled, change.Path)
		}
	}
	if len(settled) == 0 {
		return false
	}
	desired, unpatched := v.Desired.DeepCopy(), v.Unpatched.DeepCopy()
	for _, path := range settled {
		value, _ := path.Lookup(v.Live.Object)
		if isEqualAt(path, v.Unpatched, v.Desired) {
			setAt(unpatched.Object, path, value)
		}
		setAt(desired.Object, path, value)
	}
	v.Desired, v.Unpatched = desired, unpatched
	return true
}

// isServerValue reports whether a field differs only because of the server: no other manager has changed it since it was
// applied, and its desired value has not changed. For a field of another manager, or one without a base, it is enough that
// the live value contains the desired one.
func isServerValue(v *merge.Versions, change diff.Difference) bool {
	if v.Base != nil && slices.Contains(change.Before, v1alpha1.FieldManager) {
		return isEqualAt(change.Path, v.Base, v.Desired)
	}
	live, _ := change.Path.Lookup(v.Live.Object)
	desired, ok := change.Path.Lookup(v.Desired.Object)
	return ok && contains(live, desired)
}

// contains reports whether a value includes everything in another one.
func contains(value, other any) bool {
	switch other := other.(type) {
	case map[string]any:
		fields, ok := value.(map[string]any)
		for name, inner := range other {
			ok = ok && contains(fields[name], inner)
		}
		return ok
	case []any:
		items, ok := value.([]any)
		ok = ok && len(items) == len(other)
		for i := 0; ok && i < len(other); i++ {
			ok = contains(items[i], other[i])
		}
		return ok
	}
	return reflect.DeepEqual(value, other)
}

// isEqualAt reports whether two objects have equal values at a path.
func isEqualAt(path fieldpath.Path, a, b *unstructured.Unstructured) bool {
	is, ok := path.Lookup(a.Object)
	other, has := path.Lookup(b.Object)
	return ok && has && reflect.DeepEqual(is, other)
}

// setAt replaces a value in place.
func setAt(node any, path fieldpath.Path, value any) {
	last := len(path) - 1
	holder, ok := path[:last].Lookup(node)
	if !ok {
		return
	}
	switch holder := holder.(type) {
	case map[string]any:
		holder[path[last].Field] = value
	case []any:
		if i := path[last].Find(holder); i >= 0 {
			holder[i] = value
		}
	}
}
