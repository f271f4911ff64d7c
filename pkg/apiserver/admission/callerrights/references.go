// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"context"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// References lists what may refer to a destination or to a repository, in all namespaces. A list holds every write that
// was acknowledged before it was asked for, by whichever replica: what is missing from it would be redirected unseen.
type References interface {
	WatchRules(ctx context.Context) ([]configbutler.WatchRule, error)
	ClusterWatchRules(ctx context.Context) ([]configbutler.ClusterWatchRule, error)
	SyncPolicies(ctx context.Context) ([]configbutler.SyncPolicy, error)
	GitDestinations(ctx context.Context) ([]configbutler.GitDestination, error)
}
