// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/apiserver/admission/callerrights"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
)

// references lets admission see objects in storage. It asks the server itself, without a resource version, for what no cache
// makes older than the writes of other replicas.
type references struct {
	client versioned.Interface
	// cluster asks kube-apiserver.
	cluster kubernetes.Interface
}

var _ callerrights.References = &references{}

// newReferences asks the server that loopback leads to, which need not serve yet, and about namespaces kube-apiserver, which
// cluster leads to.
func newReferences(loopback, cluster *rest.Config) (*references, error) {
	client, err := newLoopbackClient(loopback, "admission")
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(cluster), "admission"))
	if err != nil {
		return nil, fmt.Errorf("make a client for namespaces: %w", err)
	}
	return &references{client: client, cluster: kube}, nil
}

// WatchRules lists those of all namespaces.
func (r *references) WatchRules(ctx context.Context) ([]v1alpha1.WatchRule, error) {
	list, err := r.client.ConfigbutlerV1alpha1().WatchRules(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ClusterWatchRules lists all.
func (r *references) ClusterWatchRules(ctx context.Context) ([]v1alpha1.ClusterWatchRule, error) {
	list, err := r.client.ConfigbutlerV1alpha1().ClusterWatchRules().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// SyncPolicies lists all, which is one.
func (r *references) SyncPolicies(ctx context.Context) ([]v1alpha1.SyncPolicy, error) {
	list, err := r.client.ConfigbutlerV1alpha1().SyncPolicies().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// GitDestinations lists those of all namespaces.
func (r *references) GitDestinations(ctx context.Context) ([]v1alpha1.GitDestination, error) {
	list, err := r.client.ConfigbutlerV1alpha1().GitDestinations(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// AppCatalog gets one.
func (r *references) AppCatalog(ctx context.Context, namespace, name string) (*v1alpha1.AppCatalog, error) {
	return r.client.ConfigbutlerV1alpha1().AppCatalogs(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Environment gets one.
func (r *references) Environment(ctx context.Context, namespace, name string) (*v1alpha1.Environment, error) {
	return r.client.ConfigbutlerV1alpha1().Environments(namespace).Get(ctx, name, metav1.GetOptions{})
}

// SyncStatus gets one.
func (r *references) SyncStatus(ctx context.Context, namespace, name string) (*v1alpha1.SyncStatus, error) {
	return r.client.ConfigbutlerV1alpha1().SyncStatuses(namespace).Get(ctx, name, metav1.GetOptions{})
}

// HasNamespace looks for one.
func (r *references) HasNamespace(ctx context.Context, name string) (bool, error) {
	_, err := r.cluster.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
