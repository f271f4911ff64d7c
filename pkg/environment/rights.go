// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"time"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/condition"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

const (
	// askAgain is the interval at which a lost permission is checked again.
	askAgain = access.DeniedTTL
	// askStanding is the interval at which granted permissions are checked: those of the catalog's editor to read what is copied, and
	// those that automatic syncs require.
	askStanding = access.AllowedTTL
)

// checkConsent determines what is not copied because the catalog's editor can no longer read it, and returns when to check again.
func (t *turning) checkConsent(ctx context.Context) (again time.Time, err error) {
	if t.catalog == nil || !t.obstacle.ok() {
		return again, nil
	}
	t.notCopied, err = t.config.Runner.StateReader.Withheld(ctx, t.catalog)
	if len(t.notCopied) > 0 {
		return t.now.Add(askAgain), err
	}
	return t.now.Add(askStanding), err
}

// checkRights checks the permissions of automatic syncs, even if there is nothing to sync, and returns when to check again. No automatic
// sync is started while a type is withheld; all changes are synced when it can be copied again.
func (t *turning) checkRights(ctx context.Context) (again time.Time) {
	if !t.environment.Spec.AutoSync || t.catalog == nil {
		return again
	}
	if len(t.notCopied) > 0 {
		t.lost = verdict{t.notCopied.Reason(), t.notCopied.Message(t.catalog.Spec.SourceNamespace)}
		return again
	}
	permissions := access.OfEnvironment(t.environment, t.catalog)
	if !t.hasTarget(t.environment) {
		permissions = append(permissions, access.OfTarget(t.environment)...)
	}
	lost, err := t.rights.Check(ctx, access.Automating(t.environment), permissions)
	switch {
	case err != nil:
		t.lost = verdict{v1alpha1.ReasonUnreachable, fmt.Sprintf("whether automatic syncs are still permitted is not known: %v", err)}
	case lost != "":
		t.lost = verdict{v1alpha1.ReasonPermissionLost, lost}
	default:
		return t.now.Add(askStanding)
	}
	return t.now.Add(askAgain)
}

// consent returns what is withheld of the types that the environment has, or of all types if it was never synced.
func (t *turning) consent() condition.Why {
	has := t.config.Runner.Index.Types(nameOf(t.environment))
	withheld := plan.Denied{}
	for of, why := range t.notCopied {
		if has.Has(of) || t.environment.Status.AppliedRevision == 0 {
			withheld[of] = why
		}
	}
	if len(withheld) == 0 {
		return condition.Why{}
	}
	return condition.Why{Reason: withheld.Reason(), Message: withheld.Message(t.catalog.Spec.SourceNamespace)}
}
