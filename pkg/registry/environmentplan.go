// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Plans say what syncs of environments would change now, and change nothing.
type Plans interface {
	// Diff is what the action All would change. It hides what Secrets hold.
	Diff(ctx context.Context, e *v1alpha1.Environment) (*v1alpha1.SyncPlan, error)
	// SecretDiff is Diff with what Secrets hold.
	SecretDiff(ctx context.Context, e *v1alpha1.Environment) (*v1alpha1.SyncPlan, error)
	// Rehearse is what a request would change, and what of it the cluster would refuse. It hides what Secrets hold.
	Rehearse(ctx context.Context, e *v1alpha1.Environment, request v1alpha1.SyncRequestSpec) (*v1alpha1.SyncPlan, error)
}

// planPatience is how long a plan may take: less than the 34 s after which the aggregator cuts requests off.
const planPatience = 25 * time.Second

// plans shows plans with what records know of the changes in them.
type plans struct {
	// made makes them; nil: this server has nothing that does.
	made Plans
	// records reads SyncStatuses.
	records *genericregistry.Store
	catalog func(ctx context.Context, environment *configbutler.Environment) (*configbutler.AppCatalog, error)
}

// rehearse is what a request would change.
func (p *plans) rehearse(
	ctx context.Context, environment *configbutler.Environment, request *configbutler.SyncRequestSpec,
) (*configbutler.SyncPlan, error) {
	spec := v1alpha1.SyncRequestSpec{}
	if err := v1alpha1.Convert_configbutler_SyncRequestSpec_To_v1alpha1_SyncRequestSpec(request, &spec, nil); err != nil {
		return nil, fmt.Errorf("converting a request: %w", err)
	}
	return p.plan(ctx, environment, func(made Plans, ctx context.Context, e *v1alpha1.Environment) (*v1alpha1.SyncPlan, error) {
		return made.Rehearse(ctx, e, spec)
	})
}

// makePlan is a method of Plans.
type makePlan func(made Plans, ctx context.Context, e *v1alpha1.Environment) (*v1alpha1.SyncPlan, error)

// plan makes a plan of an environment that has a catalog.
func (p *plans) plan(ctx context.Context, environment *configbutler.Environment, of makePlan) (*configbutler.SyncPlan, error) {
	if p.made == nil {
		return nil, apierrors.NewServiceUnavailable("this server does not plan syncs")
	}
	catalog, err := p.catalog(ctx, environment)
	if err != nil {
		return nil, err
	}
	e, err := versionedEnvironment(environment)
	if err != nil {
		return nil, err
	}
	planning, cancel := context.WithTimeout(ctx, planPatience)
	defer cancel()
	planned, err := of(p.made, planning, e.DeepCopy())
	switch {
	case errors.Is(planning.Err(), context.DeadlineExceeded):
		return nil, apierrors.NewTimeoutError(fmt.Sprintf("the plan was not made within %s", planPatience), requestRetrySeconds)
	case err != nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("planning: %w", err))
	}
	if err := p.authors(ctx, environment, catalog, planned); err != nil {
		return nil, err
	}
	out := &configbutler.SyncPlan{}
	if err := v1alpha1.Convert_v1alpha1_SyncPlan_To_configbutler_SyncPlan(planned, out, nil); err != nil {
		return nil, fmt.Errorf("converting a plan: %w", err)
	}
	out.CatalogSync = recordOfRevision(catalog, out.Revision)
	return out, nil
}

// recordOfRevision is the record of a revision of a catalog, empty when nobody knows it any more.
func recordOfRevision(catalog *configbutler.AppCatalog, revision int64) string {
	if revision != 0 && revision == catalog.Status.Revision {
		return catalog.Status.LatestSync
	}
	for _, there := range catalog.Status.History {
		if there.Revision == revision {
			return there.SyncStatus
		}
	}
	return ""
}
