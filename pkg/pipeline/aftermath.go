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
	// lookBackPeriod is how often it is asked what has become of what a sink took.
	lookBackPeriod = time.Minute
	// reasonJobFailed says that the newest Job of a sink has failed, which had been made: the batch was delivered.
	reasonJobFailed = "JobFailed"
)

// aftermath tells what has become of what a sink took.
type aftermath interface {
	// Failure says in a sentence why it has failed; empty: it has not.
	Failure(ctx context.Context) (string, error)
}

var _ aftermath = &delivery.Job{}

// lookBack shows until ctx ends what has become of what the sink took.
func (w *worker) lookBack(ctx context.Context, of aftermath) {
	ticker := w.clock.NewTicker(lookBackPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		failure, err := of.Failure(ctx)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("It is not known what has become of what a sink took", "reason", err.Error())
			continue
		}
		if w.account.came(failure, w.clock.Now()) {
			w.changed()
		}
	}
}

// came notes what has come of what the sink took: a failure, or nothing bad. It says whether that is new. What keeps the sink from
// taking more is shown instead.
func (a *account) came(failure string, now time.Time) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.status.LastError
	if last != nil && last.Reason != reasonJobFailed {
		return false
	}
	failure = summary.Cut(summary.Line(failure), longestError)
	switch {
	case failure == "":
		a.status.LastError = nil
		return last != nil
	case last != nil && last.Message == failure:
		return false
	}
	a.status.LastError = &v1alpha1.SyncError{Reason: reasonJobFailed, Message: failure, At: *second(now)}
	return true
}
