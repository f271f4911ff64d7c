// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"slices"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/merge"
)

// declared are the fields of a workload that patches of the environment set, and that the catalog offers otherwise than when the
// environment was brought to it. They stay as they are declared in any case: nobody has to decide about them alone. But whoever
// decides about other fields of the workload is to know that these were changed on both sides, too.
func (d *draft) declared(ctx context.Context, key Key, w *wanted) ([]merge.Field, error) {
	before := d.before[key]
	if before == nil {
		return nil, nil
	}
	was, _, err := d.copies.target.Copy(before)
	if err != nil || was == nil {
		return nil, err
	}
	changed, err := d.merger.Schemas.Compare(ctx, stored(was), w.undeclared)
	if err != nil {
		return nil, err
	}
	patched, err := d.merger.Schemas.Compare(ctx, w.undeclared, w.desired)
	if err != nil {
		return nil, err
	}
	kept, err := chosen(d.Resolution.Keep, key)
	if err != nil {
		return nil, err
	}
	var fields []merge.Field
	for _, difference := range patched {
		path := difference.Path
		isKept := slices.ContainsFunc(kept, path.BeginsWith)
		if !isKept && slices.ContainsFunc(changed, func(c diff.Difference) bool { return overlap(c.Path, path) }) {
			fields = append(fields, merge.Field{Path: path, Managers: []string{v1alpha1.FieldManager}})
		}
	}
	return fields, nil
}

// overlap says whether one of two fields is the other, or in it.
func overlap(a, b fieldpath.Path) bool { return a.BeginsWith(b) || b.BeginsWith(a) }
