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
	// askAgain is how soon it is found out whether a permission that was lost has come back.
	askAgain = access.DeniedTTL
	// askStanding is how often it is found out whether a permission is still there: that of the catalog's editor to read what is
	// copied, and those that automatic syncs need.
	askStanding = access.AllowedTTL
)

// checkConsent finds out what may not be copied from the source because the catalog's editor may not read it any more, and when to look
// again.
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

// checkRights finds out whether what the environment would do by itself may still be done, also while there is nothing to do, and when
// to look again. By itself nothing is done while a part of it would be withheld: all of it is done when that may be copied again.
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

// consent is what is withheld of what the environment has, or may come to have if it has never been synced.
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
