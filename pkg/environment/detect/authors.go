// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"slices"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// changedBy returns the authors of the changes: those of the events, and for changes found by comparison only, those of the
// facts.
func (k *recorder) changedBy(batch pending.Batch, items []item) []v1alpha1.SourceAuthor {
	changes := slices.Clone(batch.Changes)
	for _, i := range items {
		isTold := func(c pending.Change) bool { return len(c.Authors) > 0 && toIndexObject(c.Object) == i.of }
		if !i.differs() || slices.ContainsFunc(batch.Changes, isTold) {
			continue
		}
		author := k.authors.FindSince(i.event(), i.since)
		if author.Known() {
			changes = append(changes, pending.Change{
				Object: toPendingObject(i.of), Authors: []pending.Contribution{{Author: author}},
			})
		}
	}
	return pending.ChangedBy(changes, differing(items))
}
