// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/attribution"
)

const (
	// maxAuditMemory bounds the bytes of all bodies in memory. Further requests wait before their body is read.
	maxAuditMemory = 2 * maxAudit
	// recordLimit is how long a batch may take to become durable. The API server times out after 30 s.
	recordLimit = 10 * time.Second
	// retryAfter is the Retry-After of a batch that could not be recorded, in seconds.
	retryAfter = 5
)

// Recorder stores facts until the leader has read them.
type Recorder interface {
	// Record returns once the facts are durable.
	Record(ctx context.Context, facts []attribution.Fact) error
	// Enqueue adds facts to a queue and does not block.
	Enqueue(facts ...attribution.Fact)
}

// auditHandler serves batches of audit events. It responds with 200 once all facts of a batch are durable, and with an
// error otherwise: the API server then retries four times within about 80 s, whatever the error. A batch that is sent
// twice produces the same facts with the same IDs.
type auditHandler struct {
	recorder Recorder
	memory   *semaphore.Weighted
}

func newAuditHandler(recorder Recorder) *auditHandler {
	return &auditHandler{recorder: recorder, memory: semaphore.NewWeighted(maxAuditMemory)}
}

func (h *auditHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if refusal := h.handle(w, r); refusal != nil {
		writeError(w, refusal)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (h *auditHandler) handle(w http.ResponseWriter, r *http.Request) *apierrors.StatusError {
	if refusal := checkPost(w, r); refusal != nil {
		return refusal
	}
	weight := bodySize(r, maxAudit)
	if err := h.memory.Acquire(r.Context(), weight); err != nil {
		return unavailable("too many batches at a time")
	}
	defer h.memory.Release(weight)
	body, refusal := readBody(w, r, maxAudit)
	if refusal != nil {
		return refusal
	}
	events, err := readEvents(body)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	facts, counts := FactsOfAudit(events)
	if err := h.record(r.Context(), facts); err != nil {
		auditEvents.WithLabelValues(failed).Add(float64(counts.WithFacts))
		klog.FromContext(r.Context()).Error(err, "Failed to record audit events; the API server will retry", "events", len(events.Items))
		return unavailable("the facts could not be recorded")
	}
	auditEvents.WithLabelValues(recorded).Add(float64(counts.WithFacts))
	auditEvents.WithLabelValues(ignored).Add(float64(counts.Ignored))
	auditEvents.WithLabelValues(unreadable).Add(float64(counts.Unreadable))
	return nil
}

func (h *auditHandler) record(ctx context.Context, facts []attribution.Fact) error {
	if len(facts) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recordLimit)
	defer cancel()
	return h.recorder.Record(ctx, facts)
}
