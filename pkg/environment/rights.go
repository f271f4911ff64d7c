// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"time"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// checkConsent determines what is not copied because the catalog's editor can no longer read it, and returns when to check again.
func (r *reconciliation) checkConsent(ctx context.Context) (again time.Time, err error) {
	if r.state.catalog == nil || !r.state.obstacle.IsZero() {
		return again, nil
	}
	r.state.notCopied, err = r.environments.runner.StateReader.Withheld(ctx, r.state.catalog)
	if len(r.state.notCopied) > 0 {
		return r.state.now.Add(access.DeniedTTL), err
	}
	return r.state.now.Add(access.AllowedTTL), err
}

// checkRights checks the permissions of automatic syncs, even if there is nothing to sync, and returns when to check again. No automatic
// sync is started while a type is withheld; all changes are synced when it can be copied again.
func (r *reconciliation) checkRights(ctx context.Context) (again time.Time) {
	if !r.state.environment.Spec.AutoSync || r.state.catalog == nil {
		return again
	}
	if len(r.state.notCopied) > 0 {
		r.state.lost = conditions.Reason{
			Code: r.state.notCopied.Reason(), Message: r.state.notCopied.Message(r.state.catalog.Spec.SourceNamespace),
		}
		return again
	}
	permissions := access.OfEnvironment(r.state.environment, r.state.catalog)
	if !r.environments.caches.hasTarget(r.state.environment) {
		permissions = append(permissions, access.OfTarget(r.state.environment)...)
	}
	lost, err := r.environments.rights.Check(ctx, access.Automating(r.state.environment), permissions)
	switch {
	case err != nil:
		r.state.lost = conditions.Reasonf(v1alpha1.ReasonUnreachable, "whether automatic syncs are still permitted is not known: %v", err)
	case lost != "":
		r.state.lost = conditions.Reason{Code: v1alpha1.ReasonPermissionLost, Message: lost}
	default:
		return r.state.now.Add(access.AllowedTTL)
	}
	return r.state.now.Add(access.DeniedTTL)
}

// consent returns what is withheld of the types that the environment has, or of all types if it was never synced.
func (r *reconciliation) consent() conditions.Reason {
	has := r.environments.runner.Index.Types(nameOf(r.state.environment))
	withheld := plan.Denied{}
	for of, why := range r.state.notCopied {
		if has.Has(of) || r.state.environment.Status.AppliedRevision == 0 {
			withheld[of] = why
		}
	}
	if len(withheld) == 0 {
		return conditions.Reason{}
	}
	return conditions.Reason{Code: withheld.Reason(), Message: withheld.Message(r.state.catalog.Spec.SourceNamespace)}
}
