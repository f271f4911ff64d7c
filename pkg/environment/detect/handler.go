// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// watchHandler handles the events of the watches.
type watchHandler Detector

var _ kubewatch.Handler = (*watchHandler)(nil)

// Listed schedules a comparison of the whole namespace, because earlier events may have been missed.
func (h *watchHandler) Listed(_ context.Context, watch kubewatch.Watch, _ string) {
	h.authors.Listed(watch.Resource, watch.Namespace)
	h.pendingVersions.forgetWatch(watch)
	if h.attached.includes(watch) {
		h.attached.relisted(watch)
	}
	h.intake.Resync(watch.Namespace, pending.Relisted)
}

// Changed adds an event to the intake if it changes the content, as soon as its author is known.
func (h *watchHandler) Changed(ctx context.Context, watch kubewatch.Watch, change kubewatch.Change) {
	eventsReceived.WithLabelValues(watch.Resource.Resource).Inc()
	if h.attached.includes(watch) && h.attached.observe(watch, change) {
		h.queue.AddAfter(watch.Namespace, (*Detector)(h).window())
	}
	removed := change.Operation == kubewatch.Delete
	event := attribution.Event{
		Operation: v1alpha1.Operation(change.Operation), Resource: watch.Resource, Object: withoutContent(change.Object),
	}
	if class := h.classify(change); class != changedContent {
		eventsIgnored.WithLabelValues(string(class)).Inc()
		h.authors.Observe(event)
		return
	}
	eventsMapped.Inc()
	event.Content = h.content(change)
	entry := pending.EventOf(event.Object, removed, attribution.Author{})
	// An error means that the watch is stopping. The next one starts with a comparison of the namespace.
	_ = h.authors.Submit(ctx, event, func(_ context.Context, author attribution.Author) {
		entry.Author = author
		h.intake.Add(entry)
	})
}

// class classifies an event. The values are labels of a metric.
type class string

const (
	// changedContent is a version that differs from the known version of some copy.
	changedContent class = "content"
	// unchanged is a version that is known for all copies, or not recorded yet.
	unchanged class = "unchanged"
	// notCopied is an object without copies.
	notCopied class = "not_copied"
	// attached is an object that may be attached to workloads. Environments plan again when it changes.
	attached class = "attached"
)

// classify returns the class of an event. Only objects with copies are hashed.
func (h *watchHandler) classify(change kubewatch.Change) class {
	of := objectOf(change.Object)
	if !of.Type.Valid() {
		return attached
	}
	if copied, _ := h.config.Index.Differs(of, ""); !copied {
		return notCopied
	}
	version := v1alpha1.SeenRemoved
	if change.Operation != kubewatch.Delete {
		var err error
		if version, err = h.reader.version(change.Object); err != nil {
			return changedContent // Reading the object again reports the error.
		}
	}
	if h.pendingVersions.observe(of, version) {
		return changedContent
	}
	return unchanged
}

// content returns a function for the hash of the canonical form that facts contain. The hash is computed immediately, so
// that the object is not kept.
func (h *watchHandler) content(change kubewatch.Change) func() string {
	if h.config.Hash == nil || change.Operation == kubewatch.Delete {
		return nil
	}
	hash := ""
	if canonical, err := manifest.Render(change.Object); err == nil {
		hash = h.config.Hash(canonical)
	}
	return func() string { return hash }
}

// State logs failures of a watch.
func (h *watchHandler) State(watch kubewatch.Watch, failure error) {
	if failure != nil {
		klog.Background().Error(failure, "Failed to watch dependencies, retrying", "watch", watch.String())
	}
}
