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

func TestAnswersAsItIsTold(t *testing.T) {
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
		"as usual":              {receivertest.Answer{}, 202, accepted, nil, true},
		"busy":                  {receivertest.Status(429, "Retry-After", "3"), 429, "", nil, false},
		"broken":                {receivertest.Status(500), 500, "", nil, false},
		"refused with a reason": {receivertest.Status(400).With("no"), 400, "no", nil, false},
		"another success":       {receivertest.Status(200), 200, accepted, nil, true},
		"a success that is none": {
			receivertest.Status(200).With(`{"success":false}`), 200, `{"success":false}`, nil, false,
		},
		"closed":       {receivertest.Close(), 0, "", io.EOF, false},
		"lost":         {receivertest.Lose(), 0, "", io.EOF, true},
		"an open gate": {receivertest.Gate(open), 202, accepted, nil, true},
		"slow":         {receivertest.Slow(time.Millisecond), 202, accepted, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := receivertest.New(t, whisperer)
			r.Next(c.answer)
			status, body, err := post(t.Context(), http.DefaultClient, r.URL+names, scan, nil)
			if status != c.status || body != c.body || !errors.Is(err, c.err) {
				t.Errorf("the answer is %d %s, %v; want %d %s, %v", status, body, err, c.status, c.body, c.err)
			}
			if err := r.Await(t.Context(), func() bool { return r.Calls()[0].Status == c.status }); err != nil {
				t.Error(err)
			}
			if taken := len(r.Known()) == 1; taken != c.taken {
				t.Errorf("the call is taken: %t, want %t", taken, c.taken)
			}
			status, _, err = post(t.Context(), http.DefaultClient, r.URL+names, scan, nil)
			if status != http.StatusAccepted || err != nil {
				t.Errorf("the call after that is answered %d, %v", status, err)
			}
		})
	}
}

func TestAnswersHaveHeaders(t *testing.T) {
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
	defer func() { _ = response.Body.Close() }() // nothing is read
	header := response.Header
	if header.Get("Retry-After") != "3" || header.Get("X-Other") != "a" || response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the answer is %s with %v", response.Status, response.Header)
	}
	if len(r.Faults()) == 0 {
		t.Error("a call that is not taken anyway is not checked")
	}
}

// A success that is to be answered is none to what is refused.
func TestWhatIsWrongIsRefusedInAnyCase(t *testing.T) {
	r := receivertest.New(t, whisperer)
	r.Next(receivertest.Status(http.StatusOK))
	if status, _, err := post(t.Context(), http.DefaultClient, r.URL+names, "{}", nil); status != http.StatusBadRequest || err != nil {
		t.Errorf("the answer is %d, %v", status, err)
	}
	r.Faults()
}

func TestAnswersInTurn(t *testing.T) {
	r := receivertest.New(t, whisperer)
	r.Next(receivertest.Status(501), receivertest.Status(502))
	r.Always(receivertest.Status(503), receivertest.Status(504))
	for at, want := range []int{501, 502, 503, 504, 503, 504, 202, 202} {
		if at == 6 {
			r.Always()
		}
		if status, _, err := post(t.Context(), http.DefaultClient, r.URL+names, scan, nil); status != want || err != nil {
			t.Errorf("call %d is answered %d, %v; want %d", at, status, err, want)
		}
	}
}

// Clients that give up are not held, and neither is the end of the test.
func TestHangsUntilTheClientGoes(t *testing.T) {
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
				t.Errorf("the call ends with %v", err)
			}
		})
	}
}

func TestWhatHangsEndsWithTheTest(t *testing.T) {
	test := &spy{TB: t}
	r := receivertest.New(test, whisperer)
	r.Next(receivertest.Hang())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, _ = post(t.Context(), http.DefaultClient, r.URL+names, scan, nil) // it ends, one way or another
	}()
	if err := r.Await(t.Context(), func() bool { return len(r.Calls()) == 1 }); err != nil {
		t.Fatal(err)
	}
	for _, cleanup := range test.cleanups {
		cleanup()
	}
	<-done
	if len(test.failures) > 0 {
		t.Errorf("the test has failed: %q", test.failures)
	}
}
