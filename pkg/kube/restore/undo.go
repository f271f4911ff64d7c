// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// Undone is an object without an earlier change.
type Undone struct {
	// Content is what the object is to be, nil if it is to be deleted. It is undefined if there are conflicts.
	Content *unstructured.Unstructured
	// Conflicts are the fields of the change that have changed again since, sorted. An empty path is the object, which was deleted
	// since or created again.
	Conflicts []fieldpath.Path
}

// Undo returns the content of an object without the change from before to after. The fields of the change become as in before, all
// others stay as in now. Before, after and now are contents, nil if the object did not exist, and of one version of the type.
//
// A field of the change that now has neither the value of before nor that of after is a conflict. A list item that the change added
// or removed counts as one field, and so does an object that the change created or deleted.
func Undo(ctx context.Context, schemas *diff.Schemas, before, after, now *unstructured.Unstructured) (Undone, error) {
	switch {
	case before == nil || after == nil:
		return undoWhole(ctx, schemas, before, after, now)
	case now == nil:
		return Undone{Conflicts: []fieldpath.Path{nil}}, nil
	case equality.Semantic.DeepEqual(after.Object, now.Object):
		return Undone{Content: before.DeepCopy()}, nil // In the order that the lists had.
	}
	u := undo{before: before, after: after, now: now}
	var err error
	if u.change, err = schemas.Compare(ctx, before, after); err != nil {
		return Undone{}, err
	}
	if u.since, err = schemas.Compare(ctx, after, now); err != nil {
		return Undone{}, err
	}
	if u.left, err = schemas.Compare(ctx, before, now); err != nil {
		return Undone{}, err
	}
	return u.result(), nil
}

// undoWhole undoes a creation or deletion.
func undoWhole(ctx context.Context, schemas *diff.Schemas, before, after, now *unstructured.Unstructured) (Undone, error) {
	if (before == nil) == (now == nil) {
		if before == nil {
			return Undone{}, nil
		}
		differences, err := schemas.Compare(ctx, before, now)
		return Undone{Content: now, Conflicts: paths(differences)}, err
	}
	if after == nil {
		return Undone{Content: before.DeepCopy()}, nil
	}
	differences, err := schemas.Compare(ctx, after, now)
	return Undone{Conflicts: paths(differences)}, err
}

func paths(differences []diff.Difference) []fieldpath.Path {
	var out []fieldpath.Path
	for _, d := range differences {
		out = append(out, d.Path)
	}
	return out
}

// undo holds the contents of an object and their differences.
type undo struct {
	before, after, now *unstructured.Unstructured
	// change compares before with after, since compares after with now, and left compares before with now.
	change, since, left []diff.Difference
}

func (u *undo) result() Undone {
	out := Undone{Content: u.now.DeepCopy()}
	done := map[string]bool{}
	for _, d := range u.change {
		path := u.unit(d.Path)
		key := path.String()
		if done[key] || same(u.before, u.now, u.left, path) {
			continue
		}
		done[key] = true
		if !same(u.after, u.now, u.since, path) || !u.revert(out.Content.Object, path) {
			out.Conflicts = append(out.Conflicts, path)
		}
	}
	return out
}

// unit returns the outermost list item on the path that the change added or removed, or the path.
func (u *undo) unit(path fieldpath.Path) fieldpath.Path {
	for i, step := range path {
		if step.IsField() {
			continue
		}
		_, was := path[:i+1].Lookup(u.before.Object)
		if _, is := path[:i+1].Lookup(u.after.Object); was != is {
			return path[:i+1]
		}
	}
	return path
}

// same reports whether two contents with the given differences have the same value at a path.
func same(a, b *unstructured.Unstructured, differences []diff.Difference, path fieldpath.Path) bool {
	_, was := path.Lookup(a.Object)
	if _, is := path.Lookup(b.Object); !was || !is {
		return was == is
	}
	for _, d := range differences {
		if d.Path.BeginsWith(path) {
			return false
		}
	}
	return true
}

// revert sets a field as it was before the change. It returns false if what contained the field after the change does not exist any more.
func (u *undo) revert(content map[string]any, path fieldpath.Path) bool {
	for end := 1; end < len(path); end++ {
		_, was := path[:end].Lookup(u.after.Object)
		if _, is := path[:end].Lookup(u.now.Object); was && !is {
			return false
		}
	}
	value, was := path.Lookup(u.before.Object)
	if !was {
		remove(content, path, u.before.Object)
		return true
	}
	copied := runtime.DeepCopyJSONValue(value)
	return set(content, path, copied, u.before.Object)
}
