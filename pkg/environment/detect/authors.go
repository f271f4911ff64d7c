// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"slices"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/intake"
)

// changedBy are those who have made what differs: those whom events name, and of what only a comparison has found those whom the
// audit knows.
func (k *keeper) changedBy(batch intake.Batch, items []item) []v1alpha1.SourceAuthor {
	changes := slices.Clone(batch.Changes)
	for _, i := range items {
		isTold := func(c intake.Change) bool { return len(c.Authors) > 0 && indexObject(c.Object) == i.of }
		if !i.differs() || slices.ContainsFunc(batch.Changes, isTold) {
			continue
		}
		author := k.authors.FindSince(i.comparison(), i.since)
		if author.Known() {
			changes = append(changes, intake.Change{
				Object: intakeObject(i.of), Authors: []intake.Contribution{{Author: author}},
			})
		}
	}
	return intake.ChangedBy(changes, differing(items))
}
