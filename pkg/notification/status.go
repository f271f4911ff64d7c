// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// status is the result of the last delivery of a sink, and what prevents the next.
type status struct {
	mu sync.Mutex
	attempt
	held hold
	// failure is why the server failed, such as an error of its store; empty if the last step succeeded.
	failure string
	// due is when the next message is sent; zero if nothing is pending, or sending is held.
	due time.Time
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

// newStatus returns a status that continues the one that the process before has written, so that a start alone does not report a recovery.
func newStatus(written *v1alpha1.NotificationSinkStatus) *status {
	s := &status{held: conditions.Progressing("Permissions are being checked")}
	s.failures, s.message = int(written.Failures), written.LastError
	if delivering := meta.FindStatusCondition(written.Conditions, v1alpha1.ConditionDelivering); delivering != nil {
		switch delivering.Reason {
		case v1alpha1.ReasonDeliveryRejected:
			s.rejected = true
		case v1alpha1.ReasonSecretNotFound, v1alpha1.ReasonSecretInvalid:
			s.reason = delivering.Reason
		}
	}
	return s
}

// snapshot is a copy of a status.
type snapshot struct {
	attempt
	held    hold
	failure string
	due     time.Time
}

// current returns the status.
func (s *status) current() snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return snapshot{attempt: s.attempt, held: s.held, failure: s.failure, due: s.due}
}

// setDue sets when the next message is sent. It reports whether that has changed.
func (s *status) setDue(due time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := !s.due.Equal(due)
	s.due = due
	return changed
}

// setFailure sets why the server failed, empty if it did not. It reports whether that has changed.
func (s *status) setFailure(failure string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.failure != failure
	s.failure = failure
	return changed
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
func (s *status) fail(message, reason string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempt = attempt{failures: s.failures + 1, message: message, reason: reason}
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
