// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Bounds of messages in the status of a sink, in bytes.
const (
	longestAnswer = 200
	longestError  = 1024
)

// sinkStatus tracks the status of a sink.
type sinkStatus struct {
	mu     sync.Mutex
	status v1alpha1.PipelineSinkStatus
	// givenUp is set if the sink is not retried automatically.
	givenUp bool
	// triedAnew is set from when a sink that was given up is to be tried until its next attempt.
	triedAnew bool
	// busy is set while the sink still processes the previous batch.
	busy bool
}

func newSinkStatus(sink string) *sinkStatus {
	return &sinkStatus{status: v1alpha1.PipelineSinkStatus{Name: sink}}
}

// restore restores the status from the pipeline.
func (s *sinkStatus) restore(p *v1alpha1.SyncPipeline) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range p.Status.Sinks {
		if stored := &p.Status.Sinks[i]; stored.Name == s.status.Name {
			s.status = *stored.DeepCopy()
		}
	}
}

// current returns the status, and whether the sink was given up.
func (s *sinkStatus) current() (status v1alpha1.PipelineSinkStatus, givenUp bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.status.DeepCopy(), s.givenUp
}

// recordDelivered records that the sink accepted objects. An earlier rejection stays visible while rejected objects are left.
func (s *sinkStatus) recordDelivered(items, refused int, answer string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordResponse(answer)
	if last := s.status.LastError; last != nil && (refused == 0 || last.Reason != v1alpha1.ReasonDeliveryRejected) {
		s.status.LastError = nil
	}
	s.status.LastDeliveryTime, s.status.LastDeliveryItems = second(now), int64(items)
}

// recordRejected records that the sink rejected objects.
func (s *sinkStatus) recordRejected(answer string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordResponse(answer)
	s.status.LastError = &v1alpha1.SyncError{
		Reason: v1alpha1.ReasonDeliveryRejected, Message: summary.Cut(summary.Line(answer), longestError), At: *second(now),
	}
}

// recordResponse records a response, which ends a series of failures. The caller holds mu.
func (s *sinkStatus) recordResponse(answer string) {
	s.status.LastAnswer = summary.Cut(summary.Line(answer), longestAnswer)
	s.status.Failures, s.status.NextAttemptTime, s.givenUp, s.busy = 0, nil, false, false
}

// isStuck reports whether it is unknown when the sink accepts more: when it was given up, or, if othersWait, when it fails or is busy.
func (s *sinkStatus) isStuck(othersWait bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.givenUp || othersWait && (s.status.Failures > 0 || s.busy)
}

// recordFailure records a failed attempt, and returns the number of consecutive failures.
func (s *sinkStatus) recordFailure(why string, now time.Time) (failures int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Failures++
	s.status.LastError = &v1alpha1.SyncError{
		Reason: v1alpha1.ReasonDeliveryFailed, Message: summary.Cut(summary.Line(why), longestError), At: *second(now),
	}
	return int(s.status.Failures)
}

// scheduleRetry records when the sink is retried. The zero time means that it was given up.
func (s *sinkStatus) scheduleRetry(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.NextAttemptTime, s.givenUp = nil, until.IsZero()
	if !s.givenUp {
		s.status.NextAttemptTime = second(until)
	}
}

// recordBusy records that the sink still processes the previous batch.
func (s *sinkStatus) recordBusy(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordResponse(what)
	s.busy = true
}

// tryNow records that the next attempt of a sink that was given up is to be made now.
func (s *sinkStatus) tryNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.triedAnew = s.triedAnew || s.givenUp
	s.givenUp = false
}

// startAttempt records an attempt, and reports whether it follows a failure. A sink that was given up starts to count failures anew.
func (s *sinkStatus) startAttempt() (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again = s.status.Failures > 0
	if s.givenUp || s.triedAnew {
		s.status.Failures = 0
	}
	s.status.NextAttemptTime, s.givenUp, s.triedAnew = nil, false, false
	return again
}

// reset clears the failures, after the spec of the sink has changed.
func (s *sinkStatus) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Failures, s.status.NextAttemptTime, s.status.LastError, s.givenUp = 0, nil, nil, false
}

// second returns a time in the precision of the API.
func second(at time.Time) *metav1.Time {
	t := metav1.NewTime(at).Rfc3339Copy()
	return &t
}
