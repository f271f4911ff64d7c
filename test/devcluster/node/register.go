// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// register creates the node's object, without which no Pod of it counts as an endpoint.
func register(ctx context.Context, client kubernetes.Interface) error {
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	if _, err := client.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("failed to register the node: %w", err)
	}
	return nil
}

// apiServerService returns the address of the API server in the cluster.
func apiServerService(ctx context.Context, client kubernetes.Interface) (string, error) {
	service, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("failed to find the API server's Service: %w", err)
	}
	return service.Spec.ClusterIP, nil
}
