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

// watchHandler receives what the streams bring.
type watchHandler Detector

var _ kubewatch.Handler = (*watchHandler)(nil)

// Listed has the namespace compared: what happened before is not known.
func (h *watchHandler) Listed(_ context.Context, watch kubewatch.Watch, _ string) {
	h.authors.Listed(watch.Resource, watch.Namespace)
	h.sights.missed(watch)
	if h.companions.isAbout(watch) {
		h.companions.listed(watch)
	}
	h.intake.Resync(watch.Namespace, pending.Relisted)
}

// Changed takes an event up when it is news to an environment, and its author is known.
func (h *watchHandler) Changed(ctx context.Context, watch kubewatch.Watch, change kubewatch.Change) {
	eventsReceived.WithLabelValues(watch.Resource.Resource).Inc()
	if h.companions.isAbout(watch) && h.companions.note(watch, change) {
		h.queue.AddAfter(watch.Namespace, (*Detector)(h).window())
	}
	removed := change.Operation == kubewatch.Delete
	event := attribution.Event{Operation: v1alpha1.Operation(change.Operation), Resource: watch.Resource, Object: bare(change.Object)}
	if means := h.meaning(change); means != news {
		eventsIgnored.WithLabelValues(string(means)).Inc()
		h.authors.Observe(event)
		return
	}
	eventsMapped.Inc()
	event.Content = h.content(change)
	told := pending.EventOf(event.Object, removed, attribution.Author{})
	// An error says that the watch is stopping; what takes its place has the namespace compared.
	_ = h.authors.Submit(ctx, event, func(_ context.Context, author attribution.Author) {
		told.Author = author
		h.intake.Add(told)
	})
}

// meaning is what an event means to environments, as metrics call it.
type meaning string

const (
	// news is a version of an object that is not known of some copy.
	news meaning = "news"
	// unchanged is one that is known of all, or waits to be recorded.
	unchanged meaning = "unchanged"
	// notCopied is an object of which nobody has a copy.
	notCopied meaning = "not_copied"
	// companion is an object that is about workloads: environments plan anew when it has changed.
	companion meaning = "companion"
)

// meaning says what an event means. Only what somebody has a copy of is hashed.
func (h *watchHandler) meaning(change kubewatch.Change) meaning {
	of := objectOf(change.Object)
	if !of.Type.Valid() {
		return companion
	}
	if copied, _ := h.config.Index.Differs(of, ""); !copied {
		return notCopied
	}
	version := v1alpha1.SeenRemoved
	if change.Operation != kubewatch.Delete {
		var err error
		if version, err = h.reader.version(change.Object); err != nil {
			return news // Who reads the object again will say why.
		}
	}
	if h.sights.isNews(of, version) {
		return news
	}
	return unchanged
}

// content returns the hash of an object's canonical form as facts have it, which is made at once: the object is not kept.
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

// State notes how a watch is. While it is not open, nothing is concluded about what it would bring.
func (h *watchHandler) State(watch kubewatch.Watch, failure error) {
	if failure != nil {
		klog.Background().Error(failure, "What environments depend on cannot be watched, trying again", "watch", watch.String())
	}
}
