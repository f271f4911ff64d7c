// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// provision creates a volume for a claim, and removes the volume with its content when the claim is deleted.
func (n *Node) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim, gone bool) {
	folder := filepath.Join(n.options.Dir, "claims", string(claim.UID))
	var err error
	switch {
	case gone:
		err = os.RemoveAll(folder)
	case claim.Status.Phase != corev1.ClaimBound && claim.DeletionTimestamp == nil:
		err = n.bindClaim(ctx, claim.DeepCopy())
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
		klog.FromContext(ctx).Error(err, "Failed to provision a volume", "claim", klog.KObj(claim))
	}
}

func (n *Node) bindClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.AccessModes = claim.Spec.AccessModes
	claim.Status.Capacity = claim.Spec.Resources.Requests
	if _, err := n.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("failed to bind a claim: %w", err)
	}
	return nil
}
