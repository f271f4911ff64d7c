// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

const (
	// maxAudit is the largest body at /audit, in bytes. With --audit-webhook-truncate-enabled a batch has at most 10 MiB
	// (--audit-webhook-truncate-max-batch-size), or slightly more as the API server counts it. Without truncation, 400
	// events (--audit-webhook-batch-max-size) of 40 KiB fit.
	maxAudit = 16 << 20
	// maxReview is the largest admission review, in bytes. It holds the object before and after the change, each at most
	// 3 MiB in a request to an API server, and the overhead of JSON over protobuf.
	maxReview = 8 << 20
)

// readBody reads a request's body of at most limit bytes.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *apierrors.StatusError) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body may have %d bytes", limit))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("reading the body: %v", err))
	}
	return body, nil
}

// readEvents reads an EventList of audit.k8s.io/v1.
func readEvents(body []byte) (*auditv1.EventList, error) {
	events := &auditv1.EventList{}
	if err := json.Unmarshal(body, events); err != nil {
		return nil, fmt.Errorf("the body is no EventList: %w", err)
	}
	return events, expect(events.TypeMeta, auditv1.SchemeGroupVersion.WithKind("EventList"))
}

// readReview reads an AdmissionReview of admission.k8s.io/v1.
func readReview(body []byte) (*admissionv1.AdmissionReview, error) {
	review := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(body, review); err != nil {
		return nil, fmt.Errorf("the body is no AdmissionReview: %w", err)
	}
	return review, expect(review.TypeMeta, admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
}

func expect(got metav1.TypeMeta, want schema.GroupVersionKind) error {
	if got.GroupVersionKind() != want {
		apiVersion, kind := want.ToAPIVersionAndKind()
		return fmt.Errorf("the body has apiVersion %q and kind %q, want %q and %q", got.APIVersion, got.Kind, apiVersion, kind)
	}
	return nil
}

// checkPost returns an error for every method other than POST.
func checkPost(w http.ResponseWriter, r *http.Request) *apierrors.StatusError {
	if r.Method == http.MethodPost {
		return nil
	}
	w.Header().Set("Allow", http.MethodPost)
	return apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, r.Method, schema.GroupResource{}, "",
		"only POST is allowed here", 0, true)
}

// bodySize returns the bytes of memory to reserve for the body of a request: its Content-Length, or limit if it has none.
func bodySize(r *http.Request, limit int64) int64 {
	if r.ContentLength < 0 || r.ContentLength > limit {
		return limit
	}
	return r.ContentLength
}

// unavailable returns an error that tells the client to retry after retryAfter seconds.
func unavailable(reason string) *apierrors.StatusError {
	refusal := apierrors.NewServiceUnavailable(reason)
	refusal.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfter}
	return refusal
}

// writeError responds with a Status, as API servers do.
func writeError(w http.ResponseWriter, refusal *apierrors.StatusError) {
	status := refusal.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if seconds, ok := apierrors.SuggestsClientDelay(refusal); ok {
		w.Header().Set("Retry-After", fmt.Sprint(seconds))
	}
	responsewriters.WriteRawJSON(int(status.Code), status, w)
}
