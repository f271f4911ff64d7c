// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// state is the input from which one reconcile of an environment decides.
type state struct {
	environment *v1alpha1.Environment
	// catalog is nil if it does not exist.
	catalog *v1alpha1.AppCatalog
	records records
	// obstacle is why nothing can be synced.
	obstacle conditions.Reason
	// lost is why nothing is synced automatically: the user who turned it on has lost a permission.
	lost conditions.Reason
	// notCopied are the types that are not copied, because the catalog's editor is not allowed to read them.
	notCopied plan.Denied
	policy    *v1alpha1.SyncPolicySpec
	now       time.Time
	// offer is what a sync would change, nil while that is unknown.
	offer *offer
	// syncing is set while a sync is in progress.
	syncing bool
	// rediscovered are the ids of the rediscover requests that are done.
	rediscovered map[string]bool
	// requestErr is the error of a rediscover request. It does not stop the reconcile, and the request is retried.
	requestErr error
}

// requests returns the pending requests of the environment.
func (s *state) requests() requests { return s.environment.Status.PendingRequests }

// triggers returns what determines the desired syncs.
func (s *state) triggers() *triggers {
	return &triggers{
		environment: s.environment, catalog: s.catalog, records: s.records, offer: s.offer, automation: s.automation(), now: s.now,
	}
}

// automation returns what determines whether automatic syncs are started.
func (s *state) automation() *automation {
	return &automation{
		environment: s.environment, policy: s.policy, obstacle: s.obstacle, replaced: replacement(s.environment, s.catalog), lost: s.lost,
	}
}

// schedule returns what determines the next sync. It has nothing to start while a sync is in progress or nothing can be synced.
func (s *state) schedule() *schedule {
	return &schedule{
		spec: &s.environment.Spec, catalog: s.catalog, records: s.records, policy: s.policy, automation: s.automation(),
		isBehind: isBehind(s.environment, s.catalog, s.offer), isBlocked: s.syncing || !s.obstacle.IsZero(), now: s.now,
	}
}

// status returns what the status of the environment is written from.
func (s *state) status() *status {
	return &status{environment: s.environment, catalog: s.catalog, records: s.records, offer: s.offer, rediscovered: s.rediscovered}
}
