// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// requirementsOfEnvironment returns the permissions for what syncs of an environment do, which the author of its spec
// must have.
func (p *Plugin) requirementsOfEnvironment(ctx context.Context, e *v1alpha1.Environment, old runtime.Object) (requirements, error) {
	before, updated := old.(*v1alpha1.Environment)
	if updated && access.EnvironmentWritesNoMore(&e.Spec, &before.Spec) {
		return requirements{}, nil
	}
	catalog, err := p.catalogOf(ctx, e)
	if err != nil {
		return requirements{}, err
	}
	// Pending requests of other users were made for the previous patches.
	if catalog == nil && updated && !equality.Semantic.DeepEqual(e.Spec.Patches, before.Spec.Patches) && access.PatchesNameObjects(e) {
		return requirements{refusal: fmt.Errorf("spec.patches: they may name Secrets or ConfigMaps, and of which namespace is not known "+
			"while AppCatalog %s does not exist: create the catalog first", e.Spec.CatalogRef.Name)}, nil
	}
	namesMore := len(e.Spec.Include) > 0 && (!updated || !equality.Semantic.DeepEqual(e.Spec.Include, before.Spec.Include))
	if catalog == nil && namesMore {
		return requirements{refusal: fmt.Errorf("spec.include: it names objects, and of which namespace is not known "+
			"while AppCatalog %s does not exist: create the catalog first", e.Spec.CatalogRef.Name)}, nil
	}
	permissions, err := p.syncPermissions(ctx, e, catalog)
	return requirements{permissions: append(access.OfAccount(e), permissions...)}, err
}

// requirementsOfSync returns the permissions for a sync of an environment.
func (p *Plugin) requirementsOfSync(ctx context.Context, e *v1alpha1.Environment) (requirements, error) {
	catalog, err := p.catalogOf(ctx, e)
	if err != nil {
		return requirements{}, err
	}
	permissions, err := p.syncPermissions(ctx, e, catalog)
	return requirements{permissions: permissions}, err
}

// syncPermissions returns the permissions that a sync of an environment requires now. A sync checks again if the target
// namespace was deleted meanwhile.
func (p *Plugin) syncPermissions(ctx context.Context, e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) ([]access.Permission, error) {
	permissions, target := access.OfEnvironment(e, catalog), access.OfTarget(e)
	if len(target) == 0 {
		return permissions, nil
	}
	there, err := p.references.HasNamespace(ctx, e.Spec.TargetNamespace)
	if err != nil {
		return nil, fmt.Errorf("looking for namespace %s: %w", e.Spec.TargetNamespace, err)
	}
	if !there {
		permissions = append(permissions, target...)
	}
	return permissions, nil
}

// catalogOf returns the catalog of an environment, nil if it does not exist.
func (p *Plugin) catalogOf(ctx context.Context, e *v1alpha1.Environment) (*v1alpha1.AppCatalog, error) {
	name := e.Spec.CatalogRef.NamespacedName(e.Namespace)
	catalog, err := p.references.AppCatalog(ctx, name.Namespace, name.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}
	return catalog, nil
}

// requirementsOfEnvironmentRequest returns the permissions for a request that syncs an environment, and none for other
// requests.
func (p *Plugin) requirementsOfEnvironmentRequest(ctx context.Context, a admission.Attributes) (requirements, error) {
	e, err := p.environmentOf(ctx, a)
	if err != nil || e == nil {
		return requirements{}, err
	}
	return p.requirementsOfSync(ctx, e)
}

// environmentOf returns the environment that a request syncs, nil if there is none.
func (p *Plugin) environmentOf(ctx context.Context, a admission.Attributes) (*v1alpha1.Environment, error) {
	switch a.GetResource().Resource + "/" + a.GetSubresource() {
	case "environments/sync", "environments/resolve":
		return p.environment(ctx, a.GetNamespace(), a.GetName())
	case "environments/rollback":
		e, err := p.environment(ctx, a.GetNamespace(), a.GetName())
		if err == nil {
			e = e.DeepCopy()
			e.Spec.PinnedRevision = new(int64) // Any earlier revision can contain what the catalog no longer offers.
		}
		return e, err
	case "syncstatuses/retry":
		record, err := p.references.SyncStatus(ctx, a.GetNamespace(), a.GetName())
		if err != nil {
			return nil, fmt.Errorf("reading the record: %w", err)
		}
		if record.Spec.Subject.Kind != v1alpha1.SubjectEnvironment {
			return nil, nil
		}
		return p.environment(ctx, record.Namespace, record.Spec.Subject.Name)
	}
	return nil, nil
}

func (p *Plugin) environment(ctx context.Context, namespace, name string) (*v1alpha1.Environment, error) {
	e, err := p.references.Environment(ctx, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("reading the environment: %w", err)
	}
	return e, nil
}
