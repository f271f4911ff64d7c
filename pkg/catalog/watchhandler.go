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

// watchHandler handles the events of watches.
type watchHandler reconciler

var _ kubewatch.Handler = (*watchHandler)(nil)

// Listed requests a comparison of the namespace, because earlier events may have been missed.
func (h *watchHandler) Listed(_ context.Context, watch kubewatch.Watch, _ string) {
	h.authors.Listed(watch.Resource, watch.Namespace)
	h.intake.Resync(watch.Namespace, pending.Relisted)
}

// Changed adds a relevant event to the intake, once its author is known.
func (h *watchHandler) Changed(ctx context.Context, watch kubewatch.Watch, change kubewatch.Change) {
	eventsReceived.WithLabelValues(watch.Resource.Resource).Inc()
	event := attribution.Event{Operation: v1alpha1.Operation(change.Operation), Resource: watch.Resource, Object: change.Object}
	removed := change.Operation == kubewatch.Delete
	relevance, isFirst := h.filter.relevance(change.Object, removed)
	if relevance != relevant {
		eventsIgnored.WithLabelValues(string(relevance)).Inc()
		h.authors.Observe(event)
		return
	}
	eventsMapped.Inc()
	event.Content = h.contentHash(change)
	// Submit returns an error if the watch stops. The watch that replaces it requests a comparison of the namespace.
	_ = h.authors.Submit(ctx, event, func(_ context.Context, author attribution.Author) {
		event := pending.EventOf(change.Object, removed, author)
		// A new catalog may have read the object meanwhile. Then the event, such as one of its status, was no change.
		event.Recorded = isFirst && h.filter.isRecorded(change.Object, removed)
		h.intake.Add(event)
	})
}

// contentHash returns a function that computes the keyed hash of the object's canonical form, as facts have it. It returns nil if facts
// have no hashes, and for deletions.
func (h *watchHandler) contentHash(change kubewatch.Change) func() string {
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

// State records the state of a watch.
func (h *watchHandler) State(watch kubewatch.Watch, failure error) {
	h.sources.update(watch, failure)
	h.queue.Add(watch.Namespace)
}
