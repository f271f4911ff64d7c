// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Needs returns the objects that a plan reads by name: the referenced objects of the source, and all objects of the target.
// The caller adds those that exist to the input and calls Needs again, because they may have further references.
func (p Planner) Needs(in Input) (sets.Set[Key], error) {
	c, err := p.collect(&in)
	if err != nil {
		return nil, err
	}
	needs := c.selection.missing.Union(sets.KeySet(c.selection.desired))
	refs := slices.Clone(c.selection.refs)
	for key, w := range c.selection.desired {
		// Whether a ServiceAccount's Secrets have copies depends on the Secrets, even if they are denied.
		if key.GroupKind == defaultAccount.GroupKind {
			of, err := c.copies.referencesOf(w.object)
			if err != nil {
				return nil, err
			}
			refs = append(refs, of...)
		}
	}
	for _, ref := range refs {
		needs.Insert(keyOf(ref.Target))
	}
	if limit := c.report.consent; limit != nil {
		needs = needs.Union(limit.accounts)
	}
	return needs, nil
}
