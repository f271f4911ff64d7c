// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// Versions are an object as several know it. They are of one type, and are not changed.
type Versions struct {
	// Base is what was Desired when the versions were merged last: all of it, also where something else survived. If it is nil,
	// it is made of the fields of Live that our manager owns. Then what is desired where others have changed something counts
	// as new, and is in conflict.
	Base *unstructured.Unstructured
	// Live is the object with its managedFields, nil if there is none.
	Live    *unstructured.Unstructured
	Desired *unstructured.Unstructured
	// Unpatched is Desired without the patches that are declared, nil if there are none.
	Unpatched *unstructured.Unstructured
}

// Resolution says what becomes of conflicts: of those at a path, and below it. Where an item of a list is to go or has been
// removed, it is there as a whole or not at all.
type Resolution struct {
	// Keep are fields that stay as they are live, Take those that become as they are desired. Keep has the last word.
	Keep, Take []fieldpath.Path
}

// Field is a field and who, other than our manager, owns it or something in it, sorted. One that is gone has no owners.
type Field struct {
	Path     fieldpath.Path
	Managers []string
}

// Result says what is to be done. Its lists are sorted by path.
type Result struct {
	// Conflicts are fields that others have changed and that are wanted otherwise now. While there are any, nothing is to be done,
	// and the result has nothing else.
	Conflicts []Field
	// Apply is what our manager applies, with force.
	Apply *unstructured.Unstructured
	// Remove are fields and items of lists that go, and that applying leaves because others own them: see RemovalPatch.
	Remove []Field
	// Survives are the fields that others have changed and that stay so.
	Survives []Field
	// Overwritten are the fields that others have changed and that become what is wanted.
	Overwritten []Field
}

// Merger merges versions of objects.
type Merger struct {
	Schemas *diff.Schemas
	// Manager is the field manager under which results are applied.
	Manager string
}

// Branch lets what others have changed survive.
func (m Merger) Branch(ctx context.Context, v Versions, r Resolution) (Result, error) {
	return m.merge(ctx, v, r.verdict)
}

// Shared lets what is desired win.
func (m Merger) Shared(ctx context.Context, v Versions) (Result, error) {
	return m.merge(ctx, v, wins)
}

func (m Merger) merge(ctx context.Context, v Versions, judge judge) (Result, error) {
	if v.Live == nil {
		return Result{Apply: v.Desired.DeepCopy()}, nil
	}
	c, err := m.compare(ctx, v)
	if err != nil {
		return Result{}, fmt.Errorf("merge %s %q: %w", v.Desired.GetKind(), v.Desired.GetName(), err)
	}
	result, err := c.settle(judge)
	if err != nil {
		return Result{}, fmt.Errorf("merge %s %q: %w", v.Desired.GetKind(), v.Desired.GetName(), err)
	}
	return result, nil
}
