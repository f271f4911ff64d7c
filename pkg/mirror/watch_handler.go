// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"slices"

	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
)

// watchHandler handles the events of watches.
type watchHandler mirror

var _ kubewatch.Handler = (*watchHandler)(nil)

// Listed requests a comparison of the type for every destination that mirrors it. The watch starts before the comparison.
func (h *watchHandler) Listed(_ context.Context, watch kubewatch.Watch, _ string) {
	h.router.authors.joiner.Listed(watch.Resource, watch.Namespace)
	h.mu.Lock()
	defer h.mu.Unlock()
	needing := h.needing(watch)
	for _, d := range needing {
		d.seeds.invalidate(watch.Resource)
	}
	h.watches.update(watch, func(s *watchState) { s.listed = true })
	h.wakeAll(needing)
	signal(h.publish)
}

// needing returns the destinations that need a watch. The caller holds mu.
func (h *watchHandler) needing(watch kubewatch.Watch) (needing []*destination) {
	for _, d := range h.destinations {
		if slices.ContainsFunc(d.plan.Load().selection.watches(watch.Resource), watch.Covers) {
			needing = append(needing, d)
		}
	}
	return needing
}

// wakeAll wakes the workers of destinations. The caller holds mu.
func (h *watchHandler) wakeAll(destinations []*destination) {
	for _, d := range destinations {
		(*mirror)(h).wake(d.plan.Load().branch)
	}
}

// Changed routes a change to the outbox.
func (h *watchHandler) Changed(ctx context.Context, watch kubewatch.Watch, change kubewatch.Change) {
	h.router.changed(ctx, watch, change)
}

// State records the state of a watch. A failure wakes the workers, because comparisons of other types wait for a watch that
// is starting.
func (h *watchHandler) State(watch kubewatch.Watch, failure error) {
	h.watches.update(watch, func(s *watchState) {
		s.failure = ""
		if failure != nil {
			s.failure = failure.Error()
		}
	})
	if failure != nil {
		h.mu.Lock()
		h.wakeAll(h.needing(watch))
		h.mu.Unlock()
	}
	signal(h.publish)
}
