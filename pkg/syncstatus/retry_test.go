// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// settings returns the defaults of a policy.
func settings() v1alpha1.SyncPolicySpec {
	policy := &v1alpha1.SyncPolicy{}
	v1alpha1.SetObjectDefaults_SyncPolicy(policy)
	return policy.Spec
}

func TestNextAttempt(t *testing.T) {
	many := settings().Retry
	attempts := int32(50)
	many.MaxAttempts = &attempts
	tests := []struct {
		name     string
		state    v1alpha1.SyncState
		attempts int32
		policy   v1alpha1.RetryPolicy
		want     time.Duration
	}{
		{"after the first", failed, 1, settings().Retry, 10 * time.Second},
		{"after the second", failed, 2, settings().Retry, 20 * time.Second},
		{"after the fourth", failed, 4, settings().Retry, 80 * time.Second},
		{"after the last", failed, 5, settings().Retry, 0},
		{"after one more that a user has requested", failed, 6, settings().Retry, 0},
		{"beyond the longest backoff", failed, 7, many, 10 * time.Minute},
		{"far beyond it", failed, 49, many, 10 * time.Minute},
		{"what is being tried", retrying, 1, settings().Retry, 0},
		{"what a user has to look at", manualIntervention, 1, settings().Retry, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			record := in(environment, test.state, true)
			record.Status.Attempts = test.attempts
			record.Status.Error = &v1alpha1.SyncError{At: metav1.NewTime(began)}
			at, left := syncstatus.NextAttempt(record, test.policy)
			if left != (test.want > 0) || left && at.Sub(began) != test.want {
				t.Errorf("want %v after the failure, got %v, left %v", test.want, at.Sub(began), left)
			}
		})
	}
}
