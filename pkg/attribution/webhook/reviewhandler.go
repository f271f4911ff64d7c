// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// maxReviewMemory bounds the bytes of all reviews that are being read or are queued.
	maxReviewMemory = 8 * maxReview
	// maxQueuedReviews bounds the number of queued reviews. Reviews of a few KiB reach both bounds about together.
	maxQueuedReviews = 10_000
	// workers is the number of goroutines that convert reviews to facts. One converts some thousands a second; the second
	// one continues while the first is busy with an object of a megabyte.
	workers = 2
)

// reviewHandler serves admission reviews. It allows every request immediately. A few goroutines (Run) decode, hash and
// record the review after the response; it is dropped if the queue is full. The author of that change may then be unknown,
// but no request to the API server is delayed.
type reviewHandler struct {
	recorder Recorder
	hash     func([]byte) string
	clock    clock.PassiveClock
	memory   *semaphore.Weighted
	queue    chan queuedReview
}

// queuedReview is a review that has been responded to.
type queuedReview struct {
	review   *admissionv1.AdmissionReview
	received time.Time
	weight   int64
}

func newReviewHandler(recorder Recorder, hash func([]byte) string, clock clock.PassiveClock) *reviewHandler {
	return &reviewHandler{
		recorder: recorder, hash: hash, clock: clock,
		memory: semaphore.NewWeighted(maxReviewMemory), queue: make(chan queuedReview, maxQueuedReviews),
	}
}

// Run processes queued reviews until ctx is done and the queue is empty.
func (h *reviewHandler) Run(ctx context.Context) {
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { h.runWorker(ctx) })
	}
	all.Wait()
}

func (h *reviewHandler) runWorker(ctx context.Context) {
	for {
		select {
		case next := <-h.queue:
			h.process(ctx, next)
			continue
		default:
		}
		select {
		case next := <-h.queue:
			h.process(ctx, next)
		case <-ctx.Done():
			return
		}
	}
}

func (h *reviewHandler) process(ctx context.Context, next queuedReview) {
	defer h.memory.Release(next.weight)
	fact, err := FactOfReview(next.review, next.received, h.hash)
	switch {
	case err != nil:
		admissionReviews.WithLabelValues(unreadable).Inc()
		klog.FromContext(ctx).V(2).Info("Failed to read admission review", "reason", err)
	case fact == nil:
		admissionReviews.WithLabelValues(ignored).Inc()
	default:
		admissionReviews.WithLabelValues(recorded).Inc()
		h.recorder.Enqueue(*fact)
	}
}

func (h *reviewHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	received := h.clock.Now()
	if refusal := checkPost(w, r); refusal != nil {
		writeError(w, refusal)
		return
	}
	weight := bodySize(r, maxReview)
	// Without free memory the response is an error, which failurePolicy Ignore treats as allowed. Waiting would delay the
	// request under review, and a response that allows it needs its uid, which is in the body.
	if !h.memory.TryAcquire(weight) {
		admissionReviews.WithLabelValues(dropped).Inc()
		writeError(w, unavailable("too many admission reviews at a time"))
		return
	}
	review, refusal := h.respond(w, r)
	if refusal != nil {
		writeError(w, refusal)
	}
	if review == nil {
		h.memory.Release(weight)
		return
	}
	select {
	case h.queue <- queuedReview{review, received, weight}:
	default:
		h.memory.Release(weight)
		admissionReviews.WithLabelValues(dropped).Inc()
	}
}

// respond allows the request under review, if its uid can be read, and returns the review, if it can be decoded.
func (h *reviewHandler) respond(w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionReview, *apierrors.StatusError) {
	body, refusal := readBody(w, r, maxReview)
	if refusal != nil {
		return nil, refusal
	}
	review, err := readReview(body)
	if err == nil && review.Request != nil && review.Request.UID != "" {
		allow(w, review.Request.UID)
		return review, nil
	}
	admissionReviews.WithLabelValues(unreadable).Inc()
	uid := findUID(body)
	if uid == "" {
		return nil, apierrors.NewBadRequest("the body is no AdmissionReview of admission.k8s.io/v1 with the uid of a request")
	}
	allow(w, uid)
	return nil, nil
}

// findUID returns the uid of a review that cannot be decoded otherwise, or an empty one.
func findUID(body []byte) types.UID {
	var review struct {
		Request struct {
			UID types.UID `json:"uid"`
		} `json:"request"`
	}
	// A body that is not JSON has no uid.
	_ = json.Unmarshal(body, &review)
	return review.Request.UID
}

func allow(w http.ResponseWriter, uid types.UID) {
	apiVersion, kind := admissionv1.SchemeGroupVersion.WithKind("AdmissionReview").ToAPIVersionAndKind()
	responsewriters.WriteRawJSON(http.StatusOK, &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		Response: &admissionv1.AdmissionResponse{UID: uid, Allowed: true},
	}, w)
}
