// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// report tells the SyncPolicy, if there is one, how many records are left and how many went.
func (s *Sweeper) report(ctx context.Context, left int, went removed) error {
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
		_, err = policies.UpdateStatus(ctx, policy, metav1.UpdateOptions{})
		return err
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("writing the status of the SyncPolicy: %w", err)
}
