// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package receivertest

import (
	"io"
	"net/http"
	"time"
)

// Answer is the response to a call.
type Answer struct {
	// Code is the HTTP status; 0 means that of the consumer.
	Code   int
	header http.Header
	body   *string
	// before, if set, is called before the response. It returns early when the receiver is closed.
	before func(closed <-chan struct{}, request *http.Request)
	ending ending
}

// ending is how a response ends. The zero value is a complete response.
type ending int

const (
	_ ending = iota
	// cut closes the connection without a response.
	cut
	// lost accepts the call, and closes the connection without a response.
	lost
	// stalled begins a response that never ends.
	stalled
)

// Status responds with a status and with headers, given as pairs of name and value. The call is accepted if the status is a success and the
// answer has no body of its own.
func Status(code int, header ...string) Answer {
	answer := Answer{Code: code, header: http.Header{}}
	for at := 0; at+1 < len(header); at += 2 {
		answer.header.Add(header[at], header[at+1])
	}
	return answer
}

// With returns the same answer with another body. The call is not accepted, whatever the status is.
func (a Answer) With(body string) Answer {
	a.body = &body
	return a
}

// Close closes the connection without a response.
func Close() Answer { return Answer{ending: cut} }

// Lose accepts the call, and closes the connection without a response.
func Lose() Answer { return Answer{ending: lost} }

// Stall accepts the call, and responds with a success whose body does not end until the client disconnects.
func Stall() Answer { return Answer{ending: stalled} }

// Hang sends no response until the client disconnects.
func Hang() Answer { return Gate(nil) }

// Gate responds like the consumer, once the channel is closed.
func Gate(opened <-chan struct{}) Answer {
	return Answer{before: func(closed <-chan struct{}, request *http.Request) {
		select {
		case <-opened:
		case <-closed:
		case <-request.Context().Done():
		}
	}}
}

// Slow responds like the consumer, after a pause.
func Slow(pause time.Duration) Answer {
	return Answer{before: func(closed <-chan struct{}, request *http.Request) {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-closed:
		case <-request.Context().Done():
		}
	}}
}

// takes reports whether the call is accepted.
func (a Answer) takes() bool {
	return a.ending != cut && a.body == nil && (a.Code == 0 || a.Code/100 == 2)
}

// write writes the response and returns its status. Without a status or body of its own, it has those of the consumer.
func (a Answer) write(w http.ResponseWriter, usual reply) int {
	if a.ending == cut || a.ending == lost {
		return 0
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	switch {
	case a.Code == 0:
	case a.body != nil:
		usual = reply{a.Code, *a.body}
	case a.Code/100 == 2 && usual.code/100 == 2:
		usual.code = a.Code
	case a.Code/100 == 2: // a rejected call is never a success
	default:
		usual = reply{code: a.Code}
	}
	if a.ending != stalled && usual.body != "" && a.body == nil {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(usual.code)
	// The client may have disconnected.
	_, _ = io.WriteString(w, usual.body)
	return usual.code
}
