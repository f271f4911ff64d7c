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

// outcome is what becomes of a live object when it is brought to what is wanted of it, or what is in conflict.
type outcome struct {
	conflicts    []merge.Field
	removal      []byte
	apply, after *unstructured.Unstructured
	changes      []diff.Difference
}

func (d *draft) outcome(ctx context.Context, key Key, v merge.Versions, owner owner) (outcome, error) {
	result, err := d.merge(ctx, key, v, owner)
	if err != nil || len(result.Conflicts) > 0 {
		return outcome{conflicts: result.Conflicts}, err
	}
	out := outcome{apply: result.Apply}
	if out.removal, err = result.RemovalPatch(v.Live); err != nil {
		return outcome{}, err
	}
	if owner == others {
		if out.removal, err = d.adopt(ctx, v.Live, out.apply, out.removal); err != nil {
			return outcome{}, err
		}
	}
	if out.after, err = predict(ctx, d.merger.Schemas, v.Live, out.apply, out.removal); err != nil {
		return outcome{}, err
	}
	if out.changes, err = d.merger.Schemas.Compare(ctx, v.Live, out.after); err != nil || !isReplaced(v.Live, out.changes) {
		return out, err
	}
	return d.replaced(ctx, v, out)
}

// settle lets what the server has made of what was written stay so. Defaults within lists that are one field, and admission,
// make such differences, and would make them again. It says whether there are any.
func settle(v *merge.Versions, changes []diff.Difference) bool {
	var settled []fieldpath.Path
	for _, change := range changes {
		if change.Change == diff.Changed && !change.Path.Equal(revisionAt) && isSettled(v, change) {
			settled = append(settled, change.Path)
		}
	}
	if len(settled) == 0 {
		return false
	}
	desired, unpatched := v.Desired.DeepCopy(), v.Unpatched.DeepCopy()
	for _, path := range settled {
		value, _ := path.Lookup(v.Live.Object)
		if isAlike(path, v.Unpatched, v.Desired) {
			put(unpatched.Object, path, value)
		}
		put(desired.Object, path, value)
	}
	v.Desired, v.Unpatched = desired, unpatched
	return true
}

// isSettled says whether a field that differs is what it is because of the server: nobody else has changed it since it was
// written, and it is wanted as it was then. One that others have written, or of which nothing is known, is taken for it if it
// has everything that is wanted, and more in it: that stays with whoever it is from.
func isSettled(v *merge.Versions, change diff.Difference) bool {
	if v.Base != nil && slices.Contains(change.Before, v1alpha1.FieldManager) {
		return isAlike(change.Path, v.Base, v.Desired)
	}
	live, _ := change.Path.Lookup(v.Live.Object)
	desired, ok := change.Path.Lookup(v.Desired.Object)
	return ok && holds(live, desired)
}

// holds says whether a value has everything that another one has.
func holds(value, other any) bool {
	switch other := other.(type) {
	case map[string]any:
		fields, ok := value.(map[string]any)
		for name, inner := range other {
			ok = ok && holds(fields[name], inner)
		}
		return ok
	case []any:
		items, ok := value.([]any)
		ok = ok && len(items) == len(other)
		for i := 0; ok && i < len(other); i++ {
			ok = holds(items[i], other[i])
		}
		return ok
	}
	return reflect.DeepEqual(value, other)
}

// isAlike says whether two objects have the same at a path.
func isAlike(path fieldpath.Path, a, b *unstructured.Unstructured) bool {
	is, ok := path.Lookup(a.Object)
	other, has := path.Lookup(b.Object)
	return ok && has && reflect.DeepEqual(is, other)
}

// put replaces a value within another one, in place.
func put(node any, path fieldpath.Path, value any) {
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
