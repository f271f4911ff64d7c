// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/apiserver/admission/placement"
)

var _ placement.Objects = &references{}

// Environments returns the Environments of all namespaces.
func (r *references) Environments(ctx context.Context) ([]v1alpha1.Environment, error) {
	list, err := r.client.ConfigbutlerV1alpha1().Environments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// AppCatalogs returns the AppCatalogs of all namespaces.
func (r *references) AppCatalogs(ctx context.Context) ([]v1alpha1.AppCatalog, error) {
	list, err := r.client.ConfigbutlerV1alpha1().AppCatalogs(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
