// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/attribution"
)

// counter is a Recorder that sends enqueued facts to a channel.
type counter struct{ enqueued chan attribution.Fact }

func (c counter) Record(context.Context, []attribution.Fact) error { return nil }
func (c counter) Enqueue(facts ...attribution.Fact) {
	for _, fact := range facts {
		c.enqueued <- fact
	}
}

const created = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"r1",
	"resource":{"version":"v1","resource":"configmaps"},"operation":"CREATE","userInfo":{"username":"jane"},
	"object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","uid":"u1"}}}}`

func send(ctx context.Context, handler http.Handler, body string) *httptest.ResponseRecorder {
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)).WithContext(ctx))
	return response
}

// TestReviewsBeyondMemoryLimit checks that reviews are rejected immediately when the memory is full, and that queued reviews
// are still processed when the process ends.
func TestReviewsBeyondMemoryLimit(t *testing.T) {
	facts := counter{make(chan attribution.Fact, 10)}
	h := newReviewHandler(facts, hash, clock.RealClock{})
	if response := send(t.Context(), h, created); response.Code != http.StatusOK {
		t.Fatalf("code = %d", response.Code)
	}
	size := int64(len(created))
	if !h.memory.TryAcquire(maxReviewMemory - size) {
		t.Fatal("queued review reserves more memory than its size")
	}
	if response := send(t.Context(), h, created); response.Code != http.StatusServiceUnavailable ||
		response.Header().Get("Retry-After") == "" {
		t.Errorf("code = %d without memory", response.Code)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	h.Run(ended)
	if len(facts.enqueued) != 1 {
		t.Errorf("%d facts, want 1", len(facts.enqueued))
	}
	if !h.memory.TryAcquire(size) {
		t.Error("processed review still reserves memory")
	}
}

// TestMemoryOfReviews checks that a review without a fact releases its memory.
func TestMemoryOfReviews(t *testing.T) {
	h := newReviewHandler(counter{}, hash, clock.RealClock{})
	for _, body := range []string{"", "{", `{"request":{"uid":"a"}}`, strings.Repeat(" ", maxReview+1)} {
		send(t.Context(), h, body)
	}
	if !h.memory.TryAcquire(maxReviewMemory) {
		t.Error("memory was not released")
	}
}

// TestBatchesBeyondMemoryLimit checks that a batch waits for memory for as long as its client is connected.
func TestBatchesBeyondMemoryLimit(t *testing.T) {
	h := newAuditHandler(counter{})
	h.memory.TryAcquire(maxAuditMemory)
	disconnected, leave := context.WithCancel(t.Context())
	leave()
	const empty = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[]}`
	if response := send(disconnected, h, empty); response.Code != http.StatusServiceUnavailable {
		t.Errorf("code = %d without memory", response.Code)
	}
	h.memory.Release(maxAuditMemory)
	if response := send(t.Context(), h, empty); response.Code != http.StatusOK || !h.memory.TryAcquire(maxAuditMemory) {
		t.Errorf("code = %d with memory, or memory was not released", response.Code)
	}
}

// TestPlainHTTP checks that the secret does not authenticate on a connection without TLS.
func TestPlainHTTP(t *testing.T) {
	file := filepath.Join(t.TempDir(), "segment")
	segment := strings.Repeat("a", minSegment)
	if err := os.WriteFile(file, []byte(segment), 0o600); err != nil {
		t.Fatal(err)
	}
	endpoints, err := New(Config{Recorder: counter{}, Hash: hash, Clock: clock.RealClock{}, AdmissionSegmentFile: file})
	if err != nil {
		t.Fatal(err)
	}
	proof := endpoints.authenticator(authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		t.Error("delegate was called")
		return nil, false, nil
	}))
	for _, secure := range []bool{false, true} {
		r := httptest.NewRequest(http.MethodPost, webhookPath+segment, nil)
		if r.TLS = nil; secure {
			r.TLS = &tls.ConnectionState{}
		}
		endpoints.withoutSegment(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if _, ok, err := proof.AuthenticateRequest(r); ok != secure || err != nil {
				t.Errorf("TLS %v: authenticated = %v (%v)", secure, ok, err)
			}
			if strings.Contains(r.URL.String()+r.RequestURI, segment) {
				t.Errorf("request contains the secret: %s", r.RequestURI)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	}
}

func TestSegmentFiles(t *testing.T) {
	for content, want := range map[string]string{
		"":                                "there is no segment",
		"\n \n":                           "there is no segment",
		strings.Repeat("a", minSegment):   "",
		strings.Repeat("a", minSegment-1): "has 31 characters, want at least 32",
		strings.Repeat("a/", minSegment):  "letters, digits and -._~ only",
		strings.Repeat("ab", minSegment) + "\n\nsecret": "line 3",
	} {
		file := filepath.Join(t.TempDir(), "segment")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		err := CheckSegmentFile(file)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q: error = %v, want %q", content, err, want)
		}
	}
}
