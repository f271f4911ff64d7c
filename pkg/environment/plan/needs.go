// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/kube/references"
)

// Needs returns the objects that a plan looks at by name: in the source those that are referred to, and in the target all of
// them. What the source does not have among the situation may be there all the same: whoever reads it adds it to the situation
// and asks again, because it may refer to more.
func (p Planner) Needs(s Situation) (sets.Set[Key], error) {
	d, err := p.draft(&s)
	if err != nil {
		return nil, err
	}
	needs := d.absent.Union(sets.KeySet(d.wanted))
	refs := slices.Clone(d.found)
	for key, w := range d.wanted {
		// Which Secrets of an account have no copies depends on what they are, also when they are not to be copied now.
		if key.GroupKind == account.GroupKind {
			of, err := references.Of(w.desired)
			if err != nil {
				return nil, err
			}
			refs = append(refs, of...)
		}
	}
	for _, ref := range refs {
		needs.Insert(keyOf(ref.Target))
	}
	return needs, nil
}
