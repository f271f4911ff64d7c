// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// diffREST is a read-only subresource of Environments that shows what a sync would change.
type diffREST struct {
	environments *genericregistry.Store
	show         showPlan
}

// showPlan returns what a sync of an environment would change, as far as the user of ctx is allowed to see it.
type showPlan func(ctx context.Context, environment *configbutler.Environment) (*configbutler.SyncPlan, error)

var (
	_ rest.Storage = &diffREST{}
	_ rest.Scoper  = &diffREST{}
	_ rest.Getter  = &diffREST{}
)

// New returns an empty diff.
func (*diffREST) New() runtime.Object { return &configbutler.EnvironmentDiff{} }

// Destroy does nothing: the main endpoint owns the storage.
func (*diffREST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (*diffREST) NamespaceScoped() bool { return true }

// Get plans a sync of the environment with the given name.
func (d *diffREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := d.environments.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	environment, err := as[*configbutler.Environment](obj)
	if err != nil {
		return nil, err
	}
	plan, err := d.show(ctx, environment)
	if err != nil {
		return nil, err
	}
	return &configbutler.EnvironmentDiff{
		ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: environment.Name}, Status: *plan,
	}, nil
}

// diff is the subresource diff of an Environment, which hides the content of Secrets.
func (r *environmentRequests) diff() *diffREST {
	show := func(ctx context.Context, environment *configbutler.Environment) (*configbutler.SyncPlan, error) {
		return r.plans.plan(ctx, environment, Plans.Diff)
	}
	return &diffREST{environments: r.environments, show: show}
}

// secretDiff is the subresource secretdiff of an Environment. The plan is read with the permissions of this server, so
// the user's permission to read the Secrets is checked in addition to that on the subresource.
func (r *environmentRequests) secretDiff(decides authorizer.Authorizer) *diffREST {
	show := func(ctx context.Context, environment *configbutler.Environment) (*configbutler.SyncPlan, error) {
		catalog, err := r.catalogOf(ctx, environment)
		if err != nil {
			return nil, err
		}
		if err := checkSecretAccess(ctx, decides, environment, catalog); err != nil {
			return nil, err
		}
		return r.plans.plan(ctx, environment, Plans.SecretDiff)
	}
	return &diffREST{environments: r.environments, show: show}
}

// checkSecretAccess returns an error if the user of ctx is not allowed to read the Secrets of an environment.
func checkSecretAccess(
	ctx context.Context, decides authorizer.Authorizer, environment *configbutler.Environment, catalog *configbutler.AppCatalog,
) error {
	who, ok := userOf(ctx)
	if !ok || decides == nil {
		return apierrors.NewUnauthorized("who may read Secrets sees what they hold, and the request is not authenticated")
	}
	needed, err := secretPermissions(environment, catalog)
	if err != nil {
		return err
	}
	missing, err := access.Missing(ctx, decides, who, needed, len(needed))
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if refusal := access.Refusal(who.GetName(), missing); refusal != nil {
		return apierrors.NewForbidden(configbutler.Resource("environments"), environment.Name, refusal)
	}
	return nil
}

// secretPermissions returns the permissions that reading the Secrets of an environment requires.
func secretPermissions(environment *configbutler.Environment, catalog *configbutler.AppCatalog) ([]access.Permission, error) {
	e, err := versionedEnvironment(environment)
	if err != nil {
		return nil, err
	}
	from, err := versionedCatalog(catalog)
	if err != nil {
		return nil, err
	}
	return access.OfSecretDiff(e, from), nil
}
