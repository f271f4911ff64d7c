// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/delivery"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

const (
	// failureCheckInterval is how often the sink is checked for failures of what it has accepted.
	failureCheckInterval = time.Minute
	// reasonJobFailed means that the newest Job of a sink has failed. Its batch counts as delivered.
	reasonJobFailed = "JobFailed"
)

// failureReporter reports failures that happen after a batch was delivered.
type failureReporter interface {
	// Failure returns why processing has failed, as a sentence. It is empty if it has not.
	Failure(ctx context.Context) (string, error)
}

var _ failureReporter = &delivery.Job{}

// watchFailures updates the status with failures that are reported after the delivery, until ctx ends.
func (w *worker) watchFailures(ctx context.Context, of failureReporter) {
	ticker := w.clock.NewTicker(failureCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		failure, err := of.Failure(ctx)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Failed to check what a sink has accepted", "reason", err.Error())
			continue
		}
		if w.state.recordJobFailure(failure, w.clock.Now()) {
			w.changed()
		}
	}
}

// recordJobFailure records a failure, or that there is none, and reports whether the status has changed. An error that blocks the sink
// takes precedence.
func (s *sinkStatus) recordJobFailure(failure string, now time.Time) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.status.LastError
	if last != nil && last.Reason != reasonJobFailed {
		return false
	}
	failure = summary.Cut(summary.Line(failure), longestError)
	switch {
	case failure == "":
		s.status.LastError = nil
		return last != nil
	case last != nil && last.Message == failure:
		return false
	}
	s.status.LastError = &v1alpha1.SyncError{Reason: reasonJobFailed, Message: failure, At: *second(now)}
	return true
}
