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

// Plans compute what syncs of environments would change, without changing anything.
type Plans interface {
	// Diff returns what the action All would change, with the content of Secrets hidden.
	Diff(ctx context.Context, e *v1alpha1.Environment) (*v1alpha1.SyncPlan, error)
	// SecretDiff is Diff with the content of Secrets.
	SecretDiff(ctx context.Context, e *v1alpha1.Environment) (*v1alpha1.SyncPlan, error)
	// Rehearse returns what a request would change, and which of it the cluster would reject, with the content of
	// Secrets hidden.
	Rehearse(ctx context.Context, e *v1alpha1.Environment, request v1alpha1.SyncRequestSpec) (*v1alpha1.SyncPlan, error)
}

// planTimeout limits the time for a plan: less than the aggregator's request timeout of 34 s.
const planTimeout = 25 * time.Second

// plans completes plans with the authors of the changes.
type plans struct {
	// made computes plans. It is nil if this server cannot.
	made Plans
	// records reads SyncStatuses.
	records *genericregistry.Store
	catalog func(ctx context.Context, environment *configbutler.Environment) (*configbutler.AppCatalog, error)
}

// rehearse returns what a request would change.
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

// plan returns the plan of an environment that has a catalog.
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
	planning, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	planned, err := of(p.made, planning, e.DeepCopy())
	switch {
	case errors.Is(planning.Err(), context.DeadlineExceeded):
		return nil, apierrors.NewTimeoutError(fmt.Sprintf("the plan was not made within %s", planTimeout), requestRetrySeconds)
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

// recordOfRevision returns the record of a catalog's revision, empty if it is no longer in the history.
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
