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

// tellWaiting has the SyncPolicy, if there is one, say how many runs wait. What fails is told the next time.
func (c *environments) tellWaiting(ctx context.Context, waiting int) {
	known, err := c.informers.Configbutler().V1alpha1().SyncPolicies().Lister().Get(v1alpha1.SyncPolicyName)
	if err != nil || known.Status.SyncsWaiting == int64(waiting) {
		return
	}
	policy := known.DeepCopy()
	policy.Status.SyncsWaiting = int64(waiting)
	_, err = c.api.SyncPolicies().UpdateStatus(ctx, policy, metav1.UpdateOptions{})
	if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, "The SyncPolicy does not say how many syncs wait")
	}
}
