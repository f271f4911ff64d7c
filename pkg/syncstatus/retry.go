// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// NextAttempt returns when a Failed record is retried. left is false if no attempts of the policy, which must have its defaults, are left.
// The result depends on the record only, so a new leader continues with the same schedule.
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
