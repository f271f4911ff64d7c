// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"slices"

	"github.com/configbutler/slipstream/pkg/source"
)

// watchHandler receives what the streams bring.
type watchHandler mirror

var _ source.Handler = (*watchHandler)(nil)

// Listed asks every destination that takes the type for a comparison, which the watch has
// to precede.
func (h *watchHandler) Listed(_ context.Context, watch source.Watch, _ string) {
	h.router.authors.joiner.Listed(watch.Resource, watch.Namespace)
	h.mu.Lock()
	defer h.mu.Unlock()
	var branches []branchKey
	for _, d := range h.destinations {
		p := d.plan.Load()
		if slices.ContainsFunc(p.selection.watches(watch.Resource), watch.Covers) {
			d.seeds.invalidate(watch.Resource)
			branches = append(branches, p.branch)
		}
	}
	h.watches.update(watch, func(s *watchState) { s.listed = true })
	for _, branch := range branches {
		(*mirror)(h).wake(branch)
	}
	signal(h.publish)
}

// Changed sends a change on to the outbox.
func (h *watchHandler) Changed(ctx context.Context, watch source.Watch, change source.Change) {
	h.router.changed(ctx, watch, change)
}

// State notes how a watch is.
func (h *watchHandler) State(watch source.Watch, failure error) {
	h.watches.update(watch, func(s *watchState) {
		s.failure = ""
		if failure != nil {
			s.failure = failure.Error()
		}
	})
	signal(h.publish)
}
