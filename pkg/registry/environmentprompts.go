// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// prompts dismisses the prompts of environments: the one for the catalog's offer, and the one for the open dependency
// record. The environment counts consecutive dismissals, which a policy can limit.
//
// The record is updated first, then the environment. After a crash in between, the environment still prompts for a
// dismissed record. Another dismissal, or the controller, removes that prompt.
type prompts struct {
	// statuses updates the status of Environments. The other stores are read.
	statuses, policies, catalogs, records *genericregistry.Store
	clock                                 clock.PassiveClock
}

// catalogOffer returns the record of the catalog's prompt, empty if there is nothing to sync or the prompt was
// dismissed. Changed dependencies without a record of their own are part of the catalog's offer.
func catalogOffer(environment *configbutler.Environment) string {
	status := &environment.Status
	unrecorded := len(status.ChangedDependencies) > 0 && status.LatestDependencySync == "" && status.DismissedDependencySync == ""
	offered := status.ChangedWorkloadCount > 0 || status.AppliedCatalogSync != status.LatestCatalogSync || unrecorded
	if !offered || status.DismissedCatalogSync == status.LatestCatalogSync {
		return ""
	}
	return status.LatestCatalogSync
}

// dismissPrompts dismisses prompts of an environment: the catalog's offer if offer is set, and the open record, which
// move dismisses, if record is set. Both together count as one dismissal. If any part is rejected, nothing changes.
func (p *prompts) dismissPrompts(
	ctx context.Context, environment *configbutler.Environment, offer, record string, dryRun []string, move func() error,
) error {
	if err := p.record(ctx, environment, offer, record, []string{metav1.DryRunAll}, p.checkDismissalLimit); err != nil {
		return err
	}
	if record == "" {
		return p.record(ctx, environment, offer, "", dryRun, p.checkDismissalLimit)
	}
	if err := move(); err != nil || dryrun.IsDryRun(dryRun) {
		return err
	}
	return p.record(ctx, environment, offer, record, nil, nil)
}

// record records the dismissal of prompts in the status of an environment, unless check rejects it. A dismissal that is
// already recorded is not counted again.
func (p *prompts) record(
	ctx context.Context, environment *configbutler.Environment, offer, record string, dryRun []string,
	check func(context.Context, *configbutler.Environment) error,
) error {
	var since map[string]time.Time
	var dismissed []string
	_, err := change(ctx, p.statuses, environment.Name, dryRun, func(stored *configbutler.Environment) error {
		status := &stored.Status
		since, dismissed = p.since(ctx, stored), nil
		if stored.UID != environment.UID {
			return nil // The environment was recreated and does not have these prompts.
		}
		if offer != "" && status.DismissedCatalogSync != offer {
			status.DismissedCatalogSync = offer
			at := metav1.NewTime(p.clock.Now()).Rfc3339Copy()
			status.DismissedAt = &at
			if info, ok := userOf(ctx); ok {
				status.DismissedBy = info.GetName()
			}
			dismissed = append(dismissed, aboutCatalog)
		}
		// The controller may already have recorded the dismissal, or another record may be open by now.
		if record != "" && status.LatestDependencySync == record {
			status.LatestDependencySync, status.DismissedDependencySync = "", record
			dismissed = append(dismissed, aboutDependencies)
		}
		if len(dismissed) == 0 {
			return nil
		}
		status.Dismissals++
		if check == nil {
			return nil
		}
		return check(ctx, stored)
	})
	if err != nil || dryrun.IsDryRun(dryRun) {
		return err
	}
	for _, about := range dismissed {
		dismissals.WithLabelValues(about).Inc()
	}
	measureDecision(since, dismissed, decisionDismissed, p.clock.Now())
	return nil
}

// checkDismissalLimit returns an error if the environment's dismissals exceed the policy's limit.
func (p *prompts) checkDismissalLimit(ctx context.Context, environment *configbutler.Environment) error {
	policy, err := read[*configbutler.SyncPolicy](ctx, p.policies, v1alpha1.SyncPolicyName)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	before := environment.Status.Dismissals - 1
	if most := policy.Spec.MaxDismissals; most != nil && before >= *most {
		return refused("environments", environment.Name, fmt.Sprintf(
			"%s in a row have been dismissed, and spec.maxDismissals of SyncPolicy %s is %d: this one can only be taken, with the subresource sync",
			summary.Count(int(before), "prompt"), policy.Name, *most))
	}
	return nil
}
