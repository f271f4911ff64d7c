// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"context"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// References knows the objects that others refer to. What it answers holds every write that was acknowledged before it was
// asked, by whichever replica: what is missing from a list would be redirected unseen.
type References interface {
	// These list what may refer to a destination or to a repository, in all namespaces.
	WatchRules(ctx context.Context) ([]v1alpha1.WatchRule, error)
	ClusterWatchRules(ctx context.Context) ([]v1alpha1.ClusterWatchRule, error)
	SyncPolicies(ctx context.Context) ([]v1alpha1.SyncPolicy, error)
	GitDestinations(ctx context.Context) ([]v1alpha1.GitDestination, error)

	// These are NotFound where there is no such object.
	AppCatalog(ctx context.Context, namespace, name string) (*v1alpha1.AppCatalog, error)
	Environment(ctx context.Context, namespace, name string) (*v1alpha1.Environment, error)
	SyncStatus(ctx context.Context, namespace, name string) (*v1alpha1.SyncStatus, error)

	// HasNamespace says whether there is a namespace in the cluster.
	HasNamespace(ctx context.Context, name string) (bool, error)
}
