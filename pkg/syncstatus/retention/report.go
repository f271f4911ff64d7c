// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// report tells the SyncPolicy, if there is one, how many records are left and how many went, and whether its retention is
// in force. fault is why a sweep has ended before its time.
func (s *Sweeper) report(ctx context.Context, swept v1alpha1.Retention, left int, went removed, fault error) error {
	policies := s.Client.ConfigbutlerV1alpha1().SyncPolicies()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		policy, err := policies.Get(ctx, v1alpha1.SyncPolicyName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		policy.Status.Records = int64(left)
		policy.Status.RecordsExpired += int64(went.expired)
		policy.Status.RecordsArchived += int64(went.archived)
		if !went.finished.IsZero() {
			policy.Status.LastRetentionTime = ptr.To(metav1.NewTime(went.finished))
		}
		if current := syncpolicy.WithDefaults(policy).Spec.Retention; equality.Semantic.DeepEqual(current, swept) {
			judge(policy, fault)
		}
		_, err = policies.UpdateStatus(ctx, policy, metav1.UpdateOptions{})
		return err
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("writing the status of the SyncPolicy: %w", err)
}

// judge says whether the settings are in force: those that are not about the archive always are. A fault of another kind
// says nothing about them.
func judge(policy *v1alpha1.SyncPolicy, fault error) {
	archive := &archiveError{}
	stalled := errors.As(fault, &archive)
	if fault != nil && !stalled {
		return
	}
	ready := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded,
		Message: "The settings are in force", ObservedGeneration: policy.Generation,
	}
	if stalled {
		ready.Status, ready.Reason = metav1.ConditionFalse, v1alpha1.ReasonArchiveUnavailable
		ready.Message = printable.Message("Records whose time is over stay: " + archive.Error())
		stall := ready
		stall.Type, stall.Status = v1alpha1.ConditionStalled, metav1.ConditionTrue
		meta.SetStatusCondition(&policy.Status.Conditions, stall)
	} else {
		meta.RemoveStatusCondition(&policy.Status.Conditions, v1alpha1.ConditionStalled)
	}
	meta.SetStatusCondition(&policy.Status.Conditions, ready)
	policy.Status.ObservedGeneration = policy.Generation
}
