// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// diffREST is a subresource of Environments at which what a sync would change is read.
type diffREST struct {
	environments *genericregistry.Store
	show         showPlan
}

// showPlan is what a sync of an environment would change, as far as the user of ctx may see it.
type showPlan func(ctx context.Context, environment *configbutler.Environment) (*configbutler.SyncPlan, error)

var (
	_ rest.Storage = &diffREST{}
	_ rest.Scoper  = &diffREST{}
	_ rest.Getter  = &diffREST{}
)

// New returns an empty diff.
func (*diffREST) New() runtime.Object { return &configbutler.EnvironmentDiff{} }

// Destroy leaves the storage to the main endpoint, which owns it.
func (*diffREST) Destroy() {}

// NamespaceScoped is true, as of Environments.
func (*diffREST) NamespaceScoped() bool { return true }

// Get plans a sync of the environment called name.
func (d *diffREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := d.environments.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	environment, err := typed[*configbutler.Environment](obj)
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

// diff is the subresource diff of an Environment, which hides what Secrets hold.
func (r *environmentRequests) diff() *diffREST {
	show := func(ctx context.Context, environment *configbutler.Environment) (*configbutler.SyncPlan, error) {
		return r.plans.plan(ctx, environment, Plans.Diff)
	}
	return &diffREST{environments: r.environments, show: show}
}

// secretDiff is the subresource secretdiff of an Environment. The right to read it does not include the right to read Secrets,
// which decides makes sure of: what is shown is read with the rights of this server.
func (r *environmentRequests) secretDiff(decides authorizer.Authorizer) *diffREST {
	show := func(ctx context.Context, environment *configbutler.Environment) (*configbutler.SyncPlan, error) {
		catalog, err := r.catalogOf(ctx, environment)
		if err != nil {
			return nil, err
		}
		if err := maySeeSecrets(ctx, decides, environment, catalog); err != nil {
			return nil, err
		}
		return r.plans.plan(ctx, environment, Plans.SecretDiff)
	}
	return &diffREST{environments: r.environments, show: show}
}

// maySeeSecrets says why the user of ctx may not see the Secrets of an environment.
func maySeeSecrets(
	ctx context.Context, decides authorizer.Authorizer, environment *configbutler.Environment, catalog *configbutler.AppCatalog,
) error {
	who, ok := userOf(ctx)
	if !ok || decides == nil {
		return apierrors.NewUnauthorized("who may read Secrets sees what they hold, and nobody is authenticated")
	}
	needed, err := secretRights(environment, catalog)
	if err != nil {
		return err
	}
	missing, err := access.Missing(ctx, decides, who, needed, len(needed))
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	var refusals []error
	for _, permission := range missing {
		refusals = append(refusals, permission.Refusal(who.GetName()))
	}
	if len(refusals) == 0 {
		return nil
	}
	return apierrors.NewForbidden(configbutler.Resource("environments"), environment.Name, errors.Join(refusals...))
}

// secretRights are what whoever sees the Secrets of an environment must be allowed to do.
func secretRights(environment *configbutler.Environment, catalog *configbutler.AppCatalog) ([]access.Permission, error) {
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
