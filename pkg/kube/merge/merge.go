// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	structuredpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// Versions are the versions of an object to merge. They are of one type, and Merger does not change them.
type Versions struct {
	// Base is Desired of the last merge, including fields where others survived. If it is nil, it is derived from the
	// fields of Live that our manager owns. In that case every desired field that others have changed counts as changed
	// and is in conflict.
	Base *unstructured.Unstructured
	// Live is the object with its managedFields, nil if it does not exist.
	Live    *unstructured.Unstructured
	Desired *unstructured.Unstructured
	// Unpatched is Desired without the declared patches, nil if there are none.
	Unpatched *unstructured.Unstructured
}

// Resolution resolves conflicts at the given paths and below them. A list item that is to be removed, or that others
// removed, is resolved as a whole.
type Resolution struct {
	// Keep lists fields that stay as they are in Live, Take fields that become as in Desired. Keep takes precedence.
	Keep, Take []fieldpath.Path
}

// Field is a field with the managers, other than ours, that own it or a part of it, sorted. A field that no longer
// exists has no managers.
type Field struct {
	Path     fieldpath.Path
	Managers []string
}

// Result describes the changes to make. Its lists are sorted by path.
type Result struct {
	// Conflicts are fields that others have changed and that Desired changed differently. If there are any, the result
	// holds nothing else.
	Conflicts []Field
	// Apply is what our manager applies, with force.
	Apply *unstructured.Unstructured
	// Remove lists fields and list items to remove that server-side apply would leave, because others own them. See
	// RemovalPatch.
	Remove []Field
	// Survives lists the fields that others have changed and that stay so.
	Survives []Field
	// Overwritten lists the fields that others have changed and that become as desired.
	Overwritten []Field
	// Touched holds all fields that applying the result can change, in addition to what API servers set themselves. It is nil if the
	// result removes fields, or applies other fields than those of Desired.
	Touched *structuredpath.Set
}

// Merger merges versions of objects.
type Merger struct {
	Schemas *diff.Schemas
	// Manager is the field manager that applies the results.
	Manager string
}

// Branch merges such that changes by others survive.
func (m Merger) Branch(ctx context.Context, v Versions, r Resolution) (Result, error) {
	return m.merge(ctx, v, r.outcome)
}

// Shared merges such that Desired wins.
func (m Merger) Shared(ctx context.Context, v Versions) (Result, error) {
	return m.merge(ctx, v, desiredWins)
}

func (m Merger) merge(ctx context.Context, v Versions, policy policy) (Result, error) {
	if v.Live == nil {
		return Result{Apply: v.Desired.DeepCopy()}, nil
	}
	c, err := m.compare(ctx, v)
	if err != nil {
		return Result{}, fmt.Errorf("merge %s %q: %w", v.Desired.GetKind(), v.Desired.GetName(), err)
	}
	result, err := c.resolve(policy)
	if err != nil {
		return Result{}, fmt.Errorf("merge %s %q: %w", v.Desired.GetKind(), v.Desired.GetName(), err)
	}
	return result, nil
}

// Touched returns the fields that applying a desired version of a live object with force can change, in addition to what API servers set
// themselves: those that differ, and those of our manager that Desired does not have, which server-side apply removes.
func (m Merger) Touched(ctx context.Context, live, desired *unstructured.Unstructured) (*structuredpath.Set, error) {
	all, err := m.Schemas.Typed(ctx, live, desired)
	if err != nil {
		return nil, fmt.Errorf("compare %s %q: %w", desired.GetKind(), desired.GetName(), err)
	}
	pending, failed := all[0].Compare(all[1])
	fields, failure := all[1].ToFieldSet()
	if failed != nil || failure != nil {
		return nil, fmt.Errorf("compare %s %q: %w", desired.GetKind(), desired.GetName(), errShape)
	}
	return touched(pending, diff.FieldsOf(live, m.Manager), fields), nil
}
