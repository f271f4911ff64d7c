// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

func TestAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		status  int
		header  map[string]string
		body    string
		outcome format.Outcome
		after   time.Duration
		text    string
	}{
		"taken":           {200, nil, `{"upserted": 1}`, format.Delivered, 0, `200 OK: {"upserted": 1}`},
		"taken for later": {202, nil, "", format.Delivered, 0, "202 Accepted"},
		"busy":            {429, map[string]string{"Retry-After": "7"}, "", format.Retry, 7 * time.Second, "429 Too Many Requests"},
		"busy until a time": {
			429, map[string]string{"Retry-After": noon.Add(time.Minute).Format(http.TimeFormat)}, "", format.Retry, time.Minute,
			"429 Too Many Requests",
		},
		"busy until a time that has passed": {
			429, map[string]string{"Retry-After": noon.Add(-time.Minute).Format(http.TimeFormat)}, "", format.Retry, 0, "429 Too Many Requests",
		},
		"busy until a time that is far away": {
			503, map[string]string{"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, "", format.Retry, time.Hour, "503 Service Unavailable",
		},
		"busy for long": {
			503, map[string]string{"Retry-After": "99999999999999999999999"}, "", format.Retry, time.Hour, "503 Service Unavailable",
		},
		"busy for a negative time": {503, map[string]string{"Retry-After": "-5"}, "", format.Retry, 0, "503 Service Unavailable"},
		"busy for an invalid time": {503, map[string]string{"Retry-After": "soon"}, "", format.Retry, 0, "503 Service Unavailable"},
		"broken":                   {500, nil, "oops", format.Retry, 0, "500 Internal Server Error: oops"},
		"no answer from behind":    {504, nil, "", format.Retry, 0, "504 Gateway Timeout"},
		"too slow":                 {408, nil, "", format.Retry, 0, "408 Request Timeout"},
		"not understood":           {400, nil, "upserts is missing", format.Rejected, 0, "400 Bad Request: upserts is missing"},
		"no credentials": {
			401, nil, "", format.Rejected, 0, "the receiver wants credentials, and secretRef names none: 401 Unauthorized",
		},
		"on many lines": {500, nil, "a\r\n\tb\x1b[31m\x00c\u202ed\xff", format.Retry, 0, "500 Internal Server Error: a b [31m c d?"},
		"long":          {500, nil, strings.Repeat("é", 1000), format.Retry, 0, "500 Internal Server Error: " + strings.Repeat("é", 85) + "..."},
		"compressed":    {500, map[string]string{"Content-Encoding": "gzip"}, "\x1f\x8b", format.Retry, 0, "500 Internal Server Error"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.receiver(func(w http.ResponseWriter, _ *http.Request) {
				for key, value := range tt.header {
					w.Header().Set(key, value)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			want := format.Result{Outcome: tt.outcome, Message: tt.text, RetryAfter: tt.after}
			if diff := cmp.Diff(want, s.deliver(s.sink())); diff != "" {
				t.Errorf("wrong result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	for name, tt := range map[string]struct{ base, path string }{
		"at the root":           {"", "/api/v1/capabilities/scan"},
		"at the root, ending":   {"/", "/api/v1/capabilities/scan"},
		"below":                 {"/tools/a%2Fb", "/tools/a%2Fb/api/v1/capabilities/scan"},
		"below, with an ending": {"/tools/", "/tools/api/v1/capabilities/scan"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			var got *http.Request
			var body []byte
			s.receiver(func(_ http.ResponseWriter, r *http.Request) {
				got = r
				body, _ = io.ReadAll(r.Body)
			})
			s.spec.URL += tt.base
			s.spec.Format = v1alpha1.PipelineFormatClusterWhisperer
			if result := s.deliver(s.sink()); result.Outcome != format.Delivered {
				t.Fatalf("got %+v", result)
			}
			if got.Method != http.MethodPost || got.URL.EscapedPath() != tt.path || string(body) != `{"upserts":[],"deletes":["aa.example.com"]}` {
				t.Errorf("request = %s %s with %s", got.Method, got.URL.EscapedPath(), body)
			}
			got.Header.Del("Content-Length")
			want := http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}, "User-Agent": {"slipstream"}}
			if diff := cmp.Diff(want, got.Header); diff != "" {
				t.Errorf("wrong headers (-want +got):\n%s", diff)
			}
		})
	}
}

// A redirect gets neither the objects nor the token.
func TestRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := newFixture(t)
		elsewhere := s.receiver(func(http.ResponseWriter, *http.Request) { t.Errorf("redirect with status %d was followed", status) })
		s.receiver(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL+"/there", status) })
		s.secret(map[string]string{"token": "s3cret"})
		if got := s.deliver(s.sink()); got.Outcome != format.Rejected || !strings.Contains(got.Message, elsewhere.URL+"/there") {
			t.Errorf("%d: %+v", status, got)
		}
	}
}

// A rejected part does not block the others; one to retry ends the batch.
func TestParts(t *testing.T) {
	for name, tt := range map[string]struct {
		answers []int
		want    []format.Outcome
	}{
		"all taken":          {[]int{200, 200, 202}, []format.Outcome{format.Delivered, format.Delivered, format.Delivered}},
		"one rejected":       {[]int{200, 400, 200}, []format.Outcome{format.Delivered, format.Rejected, format.Delivered}},
		"the second is busy": {[]int{200, 429, 500}, []format.Outcome{format.Delivered, format.Retry}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.spec.Format = v1alpha1.PipelineFormatClusterWhisperer
			asked := 0
			s.receiver(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.answers[asked])
				asked++
			})
			var got recorder
			if err := s.sink().Deliver(t.Context(), batch(450), got.record); err != nil {
				t.Fatal(err)
			}
			var outcomes []format.Outcome
			for _, result := range got.results {
				outcomes = append(outcomes, result.Outcome)
			}
			if !slices.Equal(outcomes, tt.want) || asked != len(tt.want) || !slices.Equal(got.keys, []int{200, 200, 50}[:len(tt.want)]) {
				t.Errorf("outcomes %v for the objects %v after %d calls, want %v", outcomes, got.keys, asked, tt.want)
			}
		})
	}
}

// No further part is sent when a result cannot be recorded.
func TestDoneFails(t *testing.T) {
	s := newFixture(t)
	s.spec.Format = v1alpha1.PipelineFormatClusterWhisperer
	asked := 0
	s.receiver(func(http.ResponseWriter, *http.Request) { asked++ })
	err := s.sink().Deliver(t.Context(), batch(450), func([]item.Key, format.Result) error { return errBroken })
	if !errors.Is(err, errBroken) || asked != 1 {
		t.Errorf("error %v after %d calls", err, asked)
	}
}

// A canceled call is not recorded as a failure of the receiver.
func TestEnds(t *testing.T) {
	s := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.receiver(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		cancel()
		<-r.Context().Done()
	})
	err := s.sink().Deliver(ctx, batch(1), func(_ []item.Key, result format.Result) error {
		t.Errorf("unexpected result %+v", result)
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
