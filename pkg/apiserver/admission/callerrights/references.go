// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// References reads the objects that others refer to. Results must include every write that any replica acknowledged
// before the call: a missing object would be redirected without a check.
type References interface {
	// These list the objects that can refer to a destination or a repository, in all namespaces.
	WatchRules(ctx context.Context) ([]v1alpha1.WatchRule, error)
	ClusterWatchRules(ctx context.Context) ([]v1alpha1.ClusterWatchRule, error)
	SyncPolicies(ctx context.Context) ([]v1alpha1.SyncPolicy, error)
	GitDestinations(ctx context.Context) ([]v1alpha1.GitDestination, error)

	// These return NotFound if the object does not exist.
	AppCatalog(ctx context.Context, namespace, name string) (*v1alpha1.AppCatalog, error)
	Environment(ctx context.Context, namespace, name string) (*v1alpha1.Environment, error)
	SyncStatus(ctx context.Context, namespace, name string) (*v1alpha1.SyncStatus, error)
	NotificationSink(ctx context.Context, namespace, name string) (*v1alpha1.NotificationSink, error)

	// HasNamespace reports whether a namespace exists in the cluster.
	HasNamespace(ctx context.Context, name string) (bool, error)
	// NamespaceLabels returns the labels of a namespace of the cluster, and whether it exists.
	NamespaceLabels(ctx context.Context, name string) (labels.Set, bool, error)
}
