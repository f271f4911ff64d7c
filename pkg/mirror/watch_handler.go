// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"

	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
)

// watchHandler handles the events of watches.
type watchHandler struct {
	router   *router
	registry *registry
	watches  *watchStates
	// publish requests an update of statuses.
	publish chan struct{}
}

var _ kubewatch.Handler = &watchHandler{}

// watchHandler returns the handler of the mirror's watches.
func (m *mirror) watchHandler() *watchHandler {
	return &watchHandler{router: m.router, registry: m.registry, watches: m.watches, publish: m.publish}
}

// Listed requests a comparison of the type for every destination that mirrors it. The watch starts before the comparison.
func (h *watchHandler) Listed(_ context.Context, watch kubewatch.Watch, _ string) {
	h.router.authors.joiner.Listed(watch.Resource, watch.Namespace)
	h.registry.withWatch(watch, func(destinations []*destination) {
		for _, d := range destinations {
			d.seeds.invalidate(watch.Resource)
		}
		h.watches.update(watch, func(s *watchState) { s.listed = true })
	})
	signal(h.publish)
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
		h.registry.withWatch(watch, func([]*destination) {})
	}
	signal(h.publish)
}
