// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"sync"
	"time"
)

// status is how the deliveries of one sink go. It is in memory: a process that starts tries at once.
type status struct {
	mu sync.Mutex
	attempt
	held hold
}

// attempt is the result of the last attempt.
type attempt struct {
	// failures are the failed attempts since the last success.
	failures int
	// message and reason are why the last attempt failed. The reason is that of a condition, empty if there is no special one.
	message, reason string
	// rejected means that the receiver rejected the last message.
	rejected bool
	// next is when the next attempt is made.
	next time.Time
}

// current returns the last attempt, and why the sink sends nothing.
func (s *status) current() (attempt, hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempt, s.held
}

func (s *status) hold() hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// setHold sets why the sink sends nothing. It reports whether that has changed.
func (s *status) setHold(held hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.held != held
	s.held = held
	return changed
}

// fail records a failed attempt and returns how many have failed in a row.
func (s *status) fail(message, reason string, next time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempt = attempt{failures: s.failures + 1, message: message, reason: reason, next: next}
	return s.failures
}

func (s *status) retryAt(next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = next
}

func (s *status) nextAttempt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// tryNow has the next attempt made at once.
func (s *status) tryNow() { s.retryAt(time.Time{}) }

func (s *status) succeed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempt = attempt{}
}

// reject records that the receiver rejected a message, which is not sent again.
func (s *status) reject(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempt = attempt{failures: s.failures + 1, message: message, rejected: true}
}
