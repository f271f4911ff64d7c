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

// patchConflicts returns the fields that the environment's patches set and that the catalog has changed since the
// environment's revision. Patches always take precedence, so these fields alone are no conflict. They are listed for users
// who resolve other conflicts of the workload.
func (m *objectMerger) patchConflicts(ctx context.Context, key Key, w *desiredObject) ([]merge.Field, error) {
	before := m.previous[key]
	if before == nil {
		return nil, nil
	}
	was, _, err := m.target.Copy(before)
	if err != nil || was == nil {
		return nil, err
	}
	changed, err := m.merger.Schemas.Compare(ctx, normalized(was), w.unpatched)
	if err != nil {
		return nil, err
	}
	patched, err := m.merger.Schemas.Compare(ctx, w.unpatched, w.object)
	if err != nil {
		return nil, err
	}
	kept, err := chosenPaths(m.in.Resolution.Keep, key)
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

// overlap reports whether one path contains the other.
func overlap(a, b fieldpath.Path) bool { return a.BeginsWith(b) || b.BeginsWith(a) }
