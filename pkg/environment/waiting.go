// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// reportWaiting writes how many syncs wait to the status of the SyncPolicy, if there is one. Failures are retried with the next update.
func (c *environments) reportWaiting(ctx context.Context, waiting int) {
	known, err := c.informers.Configbutler().V1alpha1().SyncPolicies().Lister().Get(v1alpha1.SyncPolicyName)
	if err != nil || known.Status.SyncsWaiting == int64(waiting) {
		return
	}
	policy := known.DeepCopy()
	policy.Status.SyncsWaiting = int64(waiting)
	_, err = c.api.SyncPolicies().UpdateStatus(ctx, policy, metav1.UpdateOptions{})
	if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, "Failed to report the number of waiting syncs in the SyncPolicy")
	}
}
