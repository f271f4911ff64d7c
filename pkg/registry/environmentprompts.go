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

// prompts put aside what environments offer to take: what their catalog offers, and the open record about what workloads
// refer to. The environment counts how often in a row that is done, and a policy says how often it may be.
//
// The record is moved first, and the environment says so then. Who dies in between leaves a prompt for a record that is
// dismissed, which whoever dismisses it again takes away, as the controller does.
type prompts struct {
	// statuses changes the status of Environments. The others are read.
	statuses, policies, catalogs, records *genericregistry.Store
	clock                                 clock.PassiveClock
}

// catalogOffer is the record that the catalog's prompt is about, empty when there is nothing to take, or it has been put aside. What
// changes beside workloads, and no record tells of, comes with the action Catalog.
func catalogOffer(environment *configbutler.Environment) string {
	status := &environment.Status
	companions := len(status.ChangedDependencies) > 0 && status.LatestDependencySync == "" && status.DismissedDependencySync == ""
	offered := status.ChangedWorkloadCount > 0 || status.AppliedCatalogSync != status.LatestCatalogSync || companions
	if !offered || status.DismissedCatalogSync == status.LatestCatalogSync {
		return ""
	}
	return status.LatestCatalogSync
}

// putAside notes in the status of an environment that prompts were put aside: what the catalog offers, if offer names it, and
// the open record, if record names it, which move dismisses. Both together count as one. Nothing is done if any of it is
// refused.
func (p *prompts) putAside(
	ctx context.Context, environment *configbutler.Environment, offer, record string, dryRun []string, move func() error,
) error {
	if err := p.note(ctx, environment, offer, record, []string{metav1.DryRunAll}, p.mayPutAside); err != nil {
		return err
	}
	if record == "" {
		return p.note(ctx, environment, offer, "", dryRun, p.mayPutAside)
	}
	if err := move(); err != nil || dryrun.IsDryRun(dryRun) {
		return err
	}
	return p.note(ctx, environment, offer, record, nil, nil)
}

// note has an environment say that prompts were put aside, unless judge refuses it. What has been noted before is not counted
// again.
func (p *prompts) note(
	ctx context.Context, environment *configbutler.Environment, offer, record string, dryRun []string,
	judge func(context.Context, *configbutler.Environment) error,
) error {
	var since map[string]time.Time
	var dismissed []string
	_, err := change(ctx, p.statuses, environment.Name, dryRun, func(stored *configbutler.Environment) error {
		status := &stored.Status
		since, dismissed = p.since(ctx, stored), nil
		if stored.UID != environment.UID {
			return nil // It is another one by now, which prompts for nothing of that.
		}
		if offer != "" && status.DismissedCatalogSync != offer {
			status.DismissedCatalogSync = offer
			dismissed = append(dismissed, aboutCatalog)
		}
		// The controller may have seen that the record is dismissed, and noted it, or another record may be open by now.
		if record != "" && status.LatestDependencySync == record {
			status.LatestDependencySync, status.DismissedDependencySync = "", record
			dismissed = append(dismissed, aboutDependencies)
		}
		if len(dismissed) == 0 {
			return nil
		}
		status.Dismissals++
		if judge == nil {
			return nil
		}
		return judge(ctx, stored)
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

// mayPutAside says why the last of the dismissals of an environment is one too many.
func (p *prompts) mayPutAside(ctx context.Context, environment *configbutler.Environment) error {
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
