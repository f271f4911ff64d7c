// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/kube/references"
)

// selection holds the objects that the target must have, and the references that lead to them.
type selection struct {
	desired map[Key]*desiredObject
	// refs holds all references, by target.
	refs []references.Reference
	// unpatchedRefs holds the references that exist without the environment's patches.
	unpatchedRefs sets.Set[references.Target]
	// missing holds the objects that are referenced and not in the source.
	missing sets.Set[Key]
}

func newSelection() *selection {
	return &selection{desired: map[Key]*desiredObject{}, unpatchedRefs: sets.New[references.Target](), missing: sets.New[Key]()}
}

// isCopied reports whether an object is copied, or will be once it exists in the source. The default ServiceAccount counts
// only if it has something to copy.
func (s *selection) isCopied(key Key) bool {
	return s.desired[key] != nil || s.missing.Has(key) && key != defaultAccount
}

// serviceAccounts returns the names of the workloads' ServiceAccounts.
func (s *selection) serviceAccounts() []string {
	var names []string
	for _, ref := range s.refs {
		if ref.Type == references.ServiceAccount {
			names = append(names, ref.Name)
		}
	}
	return names
}
