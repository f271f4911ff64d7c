// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"context"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// References lists what may refer to a destination or to a repository, in all namespaces. A list holds every write that
// was acknowledged before it was asked for, by whichever replica: what is missing from it would be redirected unseen.
type References interface {
	WatchRules(ctx context.Context) ([]v1alpha1.WatchRule, error)
	ClusterWatchRules(ctx context.Context) ([]v1alpha1.ClusterWatchRule, error)
	SyncPolicies(ctx context.Context) ([]v1alpha1.SyncPolicy, error)
	GitDestinations(ctx context.Context) ([]v1alpha1.GitDestination, error)
}
