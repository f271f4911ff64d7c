// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/rights"
)

// Rights tell whether those still may do something for whom it is done.
type Rights interface {
	Check(ctx context.Context, who rights.Holder, permissions []rights.Permission) (lost string, err error)
}

var _ Rights = &rights.Standing{}

// askAgain is how soon it is found out whether a permission that was lost has come back.
const askAgain = rights.LossKept

// checkRights finds out whether what the environment would do by itself may still be done, and when to look again if it may not.
func (t *turning) checkRights(ctx context.Context) (again time.Time) {
	if !t.environment.Spec.AutoSync || t.catalog == nil || !t.isBehind() && !t.waitsByItself() {
		return again
	}
	lost, err := t.rights.Check(ctx, rights.Automating(t.environment), rights.OfEnvironment(t.environment, t.catalog))
	switch {
	case err != nil:
		t.lost = verdict{v1alpha1.ReasonUnreachable, fmt.Sprintf("whether automatic syncs are still permitted is not known: %v", err)}
	case lost != "":
		t.lost = verdict{v1alpha1.ReasonPermissionLost, lost}
	default:
		return again
	}
	return t.now.Add(askAgain)
}

// waitsByItself says whether a record is to be worked on that nobody has asked for.
func (s *situation) waitsByItself() bool {
	for _, record := range s.records {
		if record.Status.AutoTriggered && s.isActive(record) {
			return true
		}
	}
	return false
}
