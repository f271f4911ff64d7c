// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/apiserver/admission/callerrights"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
)

// references reads objects for admission plugins. It lists and gets them from the server itself without a resource version,
// so that no cache hides the writes of other replicas.
type references struct {
	client versioned.Interface
	// cluster is a client of kube-apiserver.
	cluster kubernetes.Interface
}

var _ callerrights.References = &references{}

// newReferences returns references that read objects through loopback, where the server need not serve yet, and namespaces
// from the kube-apiserver of cluster.
func newReferences(loopback, cluster *rest.Config) (*references, error) {
	client, err := newLoopbackClient(loopback, "admission")
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(cluster), "admission"))
	if err != nil {
		return nil, fmt.Errorf("creating a client for namespaces: %w", err)
	}
	return &references{client: client, cluster: kube}, nil
}

// WatchRules returns the WatchRules of all namespaces.
func (r *references) WatchRules(ctx context.Context) ([]v1alpha1.WatchRule, error) {
	list, err := r.client.ConfigbutlerV1alpha1().WatchRules(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ClusterWatchRules returns all ClusterWatchRules.
func (r *references) ClusterWatchRules(ctx context.Context) ([]v1alpha1.ClusterWatchRule, error) {
	list, err := r.client.ConfigbutlerV1alpha1().ClusterWatchRules().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// SyncPolicies returns all SyncPolicies. There is at most one.
func (r *references) SyncPolicies(ctx context.Context) ([]v1alpha1.SyncPolicy, error) {
	list, err := r.client.ConfigbutlerV1alpha1().SyncPolicies().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// GitDestinations returns the GitDestinations of all namespaces.
func (r *references) GitDestinations(ctx context.Context) ([]v1alpha1.GitDestination, error) {
	list, err := r.client.ConfigbutlerV1alpha1().GitDestinations(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// AppCatalog returns an AppCatalog.
func (r *references) AppCatalog(ctx context.Context, namespace, name string) (*v1alpha1.AppCatalog, error) {
	return r.client.ConfigbutlerV1alpha1().AppCatalogs(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Environment returns an Environment.
func (r *references) Environment(ctx context.Context, namespace, name string) (*v1alpha1.Environment, error) {
	return r.client.ConfigbutlerV1alpha1().Environments(namespace).Get(ctx, name, metav1.GetOptions{})
}

// SyncStatus returns a SyncStatus.
func (r *references) SyncStatus(ctx context.Context, namespace, name string) (*v1alpha1.SyncStatus, error) {
	return r.client.ConfigbutlerV1alpha1().SyncStatuses(namespace).Get(ctx, name, metav1.GetOptions{})
}

// NotificationSink returns a NotificationSink.
func (r *references) NotificationSink(ctx context.Context, namespace, name string) (*v1alpha1.NotificationSink, error) {
	return r.client.ConfigbutlerV1alpha1().NotificationSinks(namespace).Get(ctx, name, metav1.GetOptions{})
}

// HasNamespace reports whether a namespace exists.
func (r *references) HasNamespace(ctx context.Context, name string) (bool, error) {
	_, err := r.cluster.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// NamespaceLabels returns the labels of a namespace.
func (r *references) NamespaceLabels(ctx context.Context, name string) (labels.Set, bool, error) {
	namespace, err := r.cluster.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return namespace.Labels, true, nil
}
