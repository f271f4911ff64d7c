// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package receivertest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

func TestAnswers(t *testing.T) {
	open := make(chan struct{})
	close(open)
	const accepted = `{"deletes":0,"status":"accepted","upserts":1}`
	for name, c := range map[string]struct {
		answer receivertest.Answer
		status int
		body   string
		err    error
		taken  bool
	}{
		"default":              {receivertest.Answer{}, 202, accepted, nil, true},
		"busy":                 {receivertest.Status(429, "Retry-After", "3"), 429, "", nil, false},
		"server error":         {receivertest.Status(500), 500, "", nil, false},
		"rejected with a body": {receivertest.Status(400).With("no"), 400, "no", nil, false},
		"another success":      {receivertest.Status(200), 200, accepted, nil, true},
		"success with an error in the body": {
			receivertest.Status(200).With(`{"success":false}`), 200, `{"success":false}`, nil, false,
		},
		"connection closed": {receivertest.Close(), 0, "", io.EOF, false},
		"response lost":     {receivertest.Lose(), 0, "", io.EOF, true},
		"open gate":         {receivertest.Gate(open), 202, accepted, nil, true},
		"slow":              {receivertest.Slow(time.Millisecond), 202, accepted, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := receivertest.New(t, whisperer)
			r.Next(c.answer)
			status, body, err := post(t.Context(), http.DefaultClient, r.URL+names, scan, nil)
			if status != c.status || body != c.body || !errors.Is(err, c.err) {
				t.Errorf("response = %d %s, %v; want %d %s, %v", status, body, err, c.status, c.body, c.err)
			}
			if err := r.Await(t.Context(), func() bool { return r.Calls()[0].Status == c.status }); err != nil {
				t.Error(err)
			}
			if taken := len(r.Known()) == 1; taken != c.taken {
				t.Errorf("call was accepted: %t, want %t", taken, c.taken)
			}
			status, _, err = post(t.Context(), http.DefaultClient, r.URL+names, scan, nil)
			if status != http.StatusAccepted || err != nil {
				t.Errorf("response to the next call = %d, %v", status, err)
			}
		})
	}
}

func TestAnswerWithHeaders(t *testing.T) {
	r := receivertest.New(t, whisperer)
	r.Next(receivertest.Status(http.StatusTooManyRequests, "Retry-After", "3", "X-Other", "a"))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.URL+names, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // the body is not read
	header := response.Header
	if header.Get("Retry-After") != "3" || header.Get("X-Other") != "a" || response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("response = %s with the headers %v", response.Status, response.Header)
	}
	if len(r.Faults()) == 0 {
		t.Error("call with an error response was not checked")
	}
}

// The receiver rejects an invalid call, even if the test has set a success as the answer.
func TestInvalidCallIsRejectedDespiteAnswer(t *testing.T) {
	r := receivertest.New(t, whisperer)
	r.Next(receivertest.Status(http.StatusOK))
	if status, _, err := post(t.Context(), http.DefaultClient, r.URL+names, "{}", nil); status != http.StatusBadRequest || err != nil {
		t.Errorf("response = %d, %v", status, err)
	}
	r.Faults()
}

func TestOrderOfAnswers(t *testing.T) {
	r := receivertest.New(t, whisperer)
	r.Next(receivertest.Status(501), receivertest.Status(502))
	r.Always(receivertest.Status(503), receivertest.Status(504))
	for at, want := range []int{501, 502, 503, 504, 503, 504, 202, 202} {
		if at == 6 {
			r.Always()
		}
		if status, _, err := post(t.Context(), http.DefaultClient, r.URL+names, scan, nil); status != want || err != nil {
			t.Errorf("response to call %d = %d, %v; want %d", at, status, err, want)
		}
	}
}

// Neither a client that disconnects nor the end of the test is blocked.
func TestHangUntilTheClientDisconnects(t *testing.T) {
	for name, answer := range map[string]receivertest.Answer{"hangs": receivertest.Hang(), "stalls": receivertest.Stall()} {
		t.Run(name, func(t *testing.T) {
			r := receivertest.New(t, whisperer)
			r.Next(answer)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, _, err := post(ctx, http.DefaultClient, r.URL+names, scan, nil)
				done <- err
			}()
			if err := r.Await(t.Context(), func() bool { return len(r.Calls()) == 1 }); err != nil {
				t.Fatal(err)
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("call returned %v", err)
			}
		})
	}
}

func TestHangEndsWithTheTest(t *testing.T) {
	test := &spy{TB: t}
	r := receivertest.New(test, whisperer)
	r.Next(receivertest.Hang())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, _ = post(t.Context(), http.DefaultClient, r.URL+names, scan, nil) // any result is fine
	}()
	if err := r.Await(t.Context(), func() bool { return len(r.Calls()) == 1 }); err != nil {
		t.Fatal(err)
	}
	for _, cleanup := range test.cleanups {
		cleanup()
	}
	<-done
	if len(test.failures) > 0 {
		t.Errorf("unexpected failures of the test: %q", test.failures)
	}
}
