// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
)

// report writes the result of a sweep to the status of the SyncPolicy, if it exists: how many records are left, how many were deleted and
// archived, and whether the retention is in force. fault is the error of the sweep.
func (s *Sweeper) report(ctx context.Context, swept v1alpha1.Retention, left int, removed removalCounts, fault error) error {
	policies := s.process.Client.ConfigbutlerV1alpha1().SyncPolicies()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		policy, err := policies.Get(ctx, v1alpha1.SyncPolicyName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		policy.Status.Records = int64(left)
		policy.Status.RecordsExpired += int64(removed.expired)
		policy.Status.RecordsArchived += int64(removed.archived)
		if !removed.finished.IsZero() {
			policy.Status.LastRetentionTime = ptr.To(metav1.NewTime(removed.finished))
		}
		if current := syncpolicy.WithDefaults(policy).Spec.Retention; equality.Semantic.DeepEqual(current, swept) {
			setConditions(policy, fault, s.process.Clock.Now())
		}
		_, err = policies.UpdateStatus(ctx, policy, metav1.UpdateOptions{})
		return err
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("writing the status of the SyncPolicy: %w", err)
}

// setConditions sets whether the settings are in force. Only an unavailable archive prevents that. Other errors do not change the
// conditions.
func setConditions(policy *v1alpha1.SyncPolicy, fault error, now time.Time) {
	archive := &archiveError{}
	stalled := errors.As(fault, &archive)
	if fault != nil && !stalled {
		return
	}
	var problem conditions.Reason
	if stalled {
		problem = conditions.Reason{Code: v1alpha1.ReasonArchiveUnavailable, Message: "Records whose time is over stay: " + archive.Error()}
	}
	fine := conditions.Reason{Code: v1alpha1.ReasonSucceeded, Message: "The settings are in force"}
	conditions.For(&policy.Status.Conditions, policy.Generation, now).Ready(problem, fine, problem.Code, stalled)
	policy.Status.ObservedGeneration = policy.Generation
}
