// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package receivertest

import (
	"io"
	"net/http"
	"time"
)

// Answer is how a call is answered.
type Answer struct {
	// Code is the status; 0 is that of the consumer.
	Code   int
	header http.Header
	body   *string
	// before is waited for; then the call is answered.
	before func(closed <-chan struct{}, request *http.Request)
	ending ending
}

// ending is how an answer ends, when it does not simply end.
type ending int

const (
	_ ending = iota
	// cut closes the connection instead of answering.
	cut
	// lost takes the call, and closes the connection.
	lost
	// stalled never comes to the end of the answer.
	stalled
)

// Status answers with a status and with headers, which are given as names and values in turn. When it is a success and has no other body,
// the call is taken; otherwise it is not.
func Status(code int, header ...string) Answer {
	answer := Answer{Code: code, header: http.Header{}}
	for at := 0; at+1 < len(header); at += 2 {
		answer.header.Add(header[at], header[at+1])
	}
	return answer
}

// With is the same answer with another body. The call is not taken, whatever the status is.
func (a Answer) With(body string) Answer {
	a.body = &body
	return a
}

// Close closes the connection without an answer.
func Close() Answer { return Answer{ending: cut} }

// Lose takes the call, and closes the connection before the answer is out.
func Lose() Answer { return Answer{ending: lost} }

// Stall takes the call, and answers with a success whose body never ends. It lasts until the client goes.
func Stall() Answer { return Answer{ending: stalled} }

// Hang does not answer until the client goes.
func Hang() Answer { return Gate(nil) }

// Gate answers as the consumer does, after the channel is closed.
func Gate(opened <-chan struct{}) Answer {
	return Answer{before: func(closed <-chan struct{}, request *http.Request) {
		select {
		case <-opened:
		case <-closed:
		case <-request.Context().Done():
		}
	}}
}

// Slow answers as the consumer does, after a time.
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

// takes is whether what the call says is kept.
func (a Answer) takes() bool {
	return a.ending != cut && a.body == nil && (a.Code == 0 || a.Code/100 == 2)
}

// write writes the answer, with the status and the body of the consumer where it has none of its own.
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
	case a.Code/100 == 2: // what is refused is not taken
	default:
		usual = reply{code: a.Code}
	}
	if a.ending != stalled && usual.body != "" && a.body == nil {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(usual.code)
	// The client may be gone; then nobody misses the rest.
	_, _ = io.WriteString(w, usual.body)
	return usual.code
}
