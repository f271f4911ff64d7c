// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// authorsInterval is the interval at which awaitsAuthors is checked again.
const authorsInterval = 100 * time.Millisecond

// awaitsAuthors reports whether the namespace has changes whose authors are still being determined. If the source was read now, these
// changes would be recorded without their authors. Neither a batch nor a pending edit or request waits longer than a change waits
// for its author.
func (r *reconciler) awaitsAuthors(s *state) bool {
	if !r.authors.WaitingIn(s.namespace) {
		return false
	}
	now, longest := r.shared.Clock.Now(), r.config.AttributionMaxWait
	if due, exists := r.intake.Due(s.namespace, r.lister.batchWindow()+longest); exists && due == 0 {
		return false
	}
	return !slices.ContainsFunc(s.ready, func(catalog *v1alpha1.AppCatalog) bool {
		return slices.ContainsFunc(pendingTriggers(catalog, now), func(t trigger) bool { return now.Sub(t.detected) > longest })
	})
}
