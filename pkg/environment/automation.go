// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// automation determines whether automatic syncs are started.
type automation struct {
	environment *v1alpha1.Environment
	policy      *v1alpha1.SyncPolicySpec
	// obstacle is why nothing can be synced.
	obstacle conditions.Reason
	// replaced is why nothing is synced until a user requests it: the catalog is another one.
	replaced conditions.Reason
	// lost is why nothing is synced automatically: the user who turned it on has lost a permission.
	lost conditions.Reason
}

// withheld returns why no automatic sync is started, the zero Reason if one can be. Users still see the changes and can request a sync.
func (a *automation) withheld() conditions.Reason {
	switch {
	case !a.obstacle.IsZero():
		return a.obstacle
	case !a.environment.Spec.AutoSync:
		return conditions.Reason{Code: v1alpha1.ReasonSuspended, Message: "spec.autoSync is false"}
	}
	return a.stopped(v1alpha1.SyncTypeEnvironment)
}

// stopped returns why automatic syncs of a type are not started, the zero Reason if they can be.
func (a *automation) stopped(of v1alpha1.SyncType) conditions.Reason {
	switch {
	case of == v1alpha1.SyncTypeEnvironment && a.policy.Suspend.EnvironmentAutoSync:
		return conditions.Reason{Code: v1alpha1.ReasonSuspended, Message: "automatic syncs from catalogs are suspended by the SyncPolicy"}
	case of == v1alpha1.SyncTypeDependency && a.policy.Suspend.DependencyAutoSync:
		return conditions.Reason{
			Code: v1alpha1.ReasonSuspended, Message: "automatic syncs of what workloads refer to are suspended by the SyncPolicy",
		}
	case pinnedRevision(a.environment) > 0:
		return conditions.Reasonf(v1alpha1.ReasonPinned, "pinned at r%d by spec.pinnedRevision", pinnedRevision(a.environment))
	case !a.replaced.IsZero():
		return a.replaced
	}
	return a.lost
}

// reason returns why the catalog's content is not synced although spec.autoSync is set. A lost permission is reported even if the
// environment is not behind, because it also blocks the next sync. That the catalog is another one is reported without spec.autoSync, too:
// the next sync that a user requests follows it.
func (a *automation) reason(isBehind bool) conditions.Reason {
	held := a.withheld()
	switch {
	case !a.environment.Spec.AutoSync && isBehind && a.obstacle.IsZero() && pinnedRevision(a.environment) == 0:
		return a.replaced
	case !a.environment.Spec.AutoSync, !isBehind && held.Code != v1alpha1.ReasonPermissionLost:
		return conditions.Reason{}
	}
	return held
}
