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
	// maxReviewMemory bounds the reviews that are being read or wait to become facts.
	maxReviewMemory = 8 * maxReview
	// maxReviewsWaiting bounds their number: reviews of a few KiB fill the memory as soon.
	maxReviewsWaiting = 10_000
	// readers turn reviews into facts. One reads and hashes some thousands a second; a second one goes on where the first
	// has met an object of a megabyte.
	readers = 2
)

// reviewHandler takes admission reviews. It allows everything, at once: what is asked is read, hashed and recorded after
// the answer, by a few goroutines (Run), and given up where there is no room for it. The one who made that change may stay
// unknown then; no request of anybody's waits for us.
type reviewHandler struct {
	recorder Recorder
	hash     func([]byte) string
	clock    clock.PassiveClock
	memory   *semaphore.Weighted
	waiting  chan waitingReview
}

// waitingReview is a review that has been answered.
type waitingReview struct {
	review   *admissionv1.AdmissionReview
	received time.Time
	weight   int64
}

func newReviewHandler(recorder Recorder, hash func([]byte) string, clock clock.PassiveClock) *reviewHandler {
	return &reviewHandler{
		recorder: recorder, hash: hash, clock: clock,
		memory: semaphore.NewWeighted(maxReviewMemory), waiting: make(chan waitingReview, maxReviewsWaiting),
	}
}

// Run reads what has been answered, until ctx is done and nothing waits any more.
func (h *reviewHandler) Run(ctx context.Context) {
	var all sync.WaitGroup
	for range readers {
		all.Go(func() { h.readUntil(ctx) })
	}
	all.Wait()
}

func (h *reviewHandler) readUntil(ctx context.Context) {
	for {
		select {
		case next := <-h.waiting:
			h.read(ctx, next)
			continue
		default:
		}
		select {
		case next := <-h.waiting:
			h.read(ctx, next)
		case <-ctx.Done():
			return
		}
	}
}

func (h *reviewHandler) read(ctx context.Context, next waitingReview) {
	defer h.memory.Release(next.weight)
	fact, err := FactOfReview(next.review, next.received, h.hash)
	switch {
	case err != nil:
		admissionReviews.WithLabelValues(unreadable).Inc()
		klog.FromContext(ctx).V(2).Info("An admission review could not be read", "reason", err)
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
		refuse(w, refusal)
		return
	}
	weight := weigh(r, maxReview)
	// Without room the answer is an error, which failurePolicy Ignore takes for yes: to wait would hold the request up that
	// is under review, and to allow it takes its uid.
	if !h.memory.TryAcquire(weight) {
		admissionReviews.WithLabelValues(dropped).Inc()
		refuse(w, unavailable("too many admission reviews at a time"))
		return
	}
	review, refusal := h.answer(w, r)
	if refusal != nil {
		refuse(w, refusal)
	}
	if review == nil {
		h.memory.Release(weight)
		return
	}
	select {
	case h.waiting <- waitingReview{review, received, weight}:
	default:
		h.memory.Release(weight)
		admissionReviews.WithLabelValues(dropped).Inc()
	}
}

// answer allows what is under review, if it can be told what that is, and returns the review, if it can be read.
func (h *reviewHandler) answer(w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionReview, *apierrors.StatusError) {
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

// findUID looks for the uid of a review of which nothing else is understood.
func findUID(body []byte) types.UID {
	var review struct {
		Request struct {
			UID types.UID `json:"uid"`
		} `json:"request"`
	}
	// What is no JSON has no uid.
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
