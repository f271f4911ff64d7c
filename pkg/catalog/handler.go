// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// watchHandler receives what the streams bring.
type watchHandler catalogs

var _ kubewatch.Handler = (*watchHandler)(nil)

// Listed has the namespace compared: what happened before is not known.
func (h *watchHandler) Listed(_ context.Context, watch kubewatch.Watch, _ string) {
	h.authors.Listed(watch.Resource, watch.Namespace)
	h.intake.Resync(watch.Namespace, pending.Relisted)
}

// Changed takes an event up when it means something to a catalog, and its author is known.
func (h *watchHandler) Changed(ctx context.Context, watch kubewatch.Watch, change kubewatch.Change) {
	eventsReceived.WithLabelValues(watch.Resource.Resource).Inc()
	event := attribution.Event{Operation: v1alpha1.Operation(change.Operation), Resource: watch.Resource, Object: change.Object}
	removed := change.Operation == kubewatch.Delete
	if means := h.interests.meaning(change.Object, removed); means != news {
		eventsIgnored.WithLabelValues(string(means)).Inc()
		h.authors.Observe(event)
		return
	}
	eventsMapped.Inc()
	event.Content = h.content(change)
	// An error says that the watch is stopping; what takes its place has the namespace compared.
	_ = h.authors.Submit(ctx, event, func(_ context.Context, author attribution.Author) {
		h.intake.Add(pending.EventOf(change.Object, removed, author))
	})
}

// content returns the hash of an object's canonical form as facts have it, when it is asked for.
func (h *watchHandler) content(change kubewatch.Change) func() string {
	if h.config.Hash == nil || change.Operation == kubewatch.Delete {
		return nil
	}
	return func() string {
		canonical, err := manifest.Render(change.Object)
		if err != nil {
			return ""
		}
		return h.config.Hash(canonical)
	}
}

// State notes how a watch is.
func (h *watchHandler) State(watch kubewatch.Watch, failure error) {
	h.reach.update(watch, failure)
	h.queue.Add(watch.Namespace)
}
