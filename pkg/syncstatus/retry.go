// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// NextAttempt says when a record that is Failed is to be tried again, or that the attempts of the policy, which has its
// defaults, are used up. It follows from the record alone, so that whoever takes over goes on where another has stopped.
func NextAttempt(record *v1alpha1.SyncStatus, policy v1alpha1.RetryPolicy) (at time.Time, left bool) {
	status := &record.Status
	if status.State != v1alpha1.SyncStateFailed || status.Error == nil || status.Attempts >= *policy.MaxAttempts {
		return time.Time{}, false
	}
	backoff := wait.Backoff{
		Duration: policy.Backoff.Duration, Factor: 2, Steps: int(status.Attempts), Cap: policy.MaxBackoff.Duration,
	}
	var delay time.Duration
	for range max(status.Attempts, 1) {
		delay = backoff.Step()
	}
	return status.Error.At.Add(delay), true
}
