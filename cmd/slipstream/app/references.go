// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/apiserver/admission/callerrights"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
)

// references lets admission see the rules, policies and destinations in storage. It asks the server itself, without a resource
// version, for a list that no cache makes older than the writes of other replicas.
type references struct {
	client versioned.Interface
}

var _ callerrights.References = &references{}

// newReferences asks the server that loopback leads to, which need not serve yet.
func newReferences(loopback *rest.Config) (*references, error) {
	client, err := newLoopbackClient(loopback, "admission")
	if err != nil {
		return nil, err
	}
	return &references{client: client}, nil
}

// WatchRules lists those of all namespaces.
func (r *references) WatchRules(ctx context.Context) ([]configbutler.WatchRule, error) {
	list, err := r.client.ConfigbutlerV1alpha1().WatchRules(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out configbutler.WatchRuleList
	err = v1alpha1.Convert_v1alpha1_WatchRuleList_To_configbutler_WatchRuleList(list, &out, nil)
	return out.Items, err
}

// ClusterWatchRules lists all.
func (r *references) ClusterWatchRules(ctx context.Context) ([]configbutler.ClusterWatchRule, error) {
	list, err := r.client.ConfigbutlerV1alpha1().ClusterWatchRules().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out configbutler.ClusterWatchRuleList
	err = v1alpha1.Convert_v1alpha1_ClusterWatchRuleList_To_configbutler_ClusterWatchRuleList(list, &out, nil)
	return out.Items, err
}

// SyncPolicies lists all, which is one.
func (r *references) SyncPolicies(ctx context.Context) ([]configbutler.SyncPolicy, error) {
	list, err := r.client.ConfigbutlerV1alpha1().SyncPolicies().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out configbutler.SyncPolicyList
	err = v1alpha1.Convert_v1alpha1_SyncPolicyList_To_configbutler_SyncPolicyList(list, &out, nil)
	return out.Items, err
}

// GitDestinations lists those of all namespaces.
func (r *references) GitDestinations(ctx context.Context) ([]configbutler.GitDestination, error) {
	list, err := r.client.ConfigbutlerV1alpha1().GitDestinations(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out configbutler.GitDestinationList
	err = v1alpha1.Convert_v1alpha1_GitDestinationList_To_configbutler_GitDestinationList(list, &out, nil)
	return out.Items, err
}
