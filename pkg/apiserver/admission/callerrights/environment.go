// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// wantedByEnvironment is what syncs of an environment do, which whoever writes its spec asks for.
func (p *Plugin) wantedByEnvironment(ctx context.Context, e *v1alpha1.Environment, old runtime.Object) (wanted, error) {
	before, updated := old.(*v1alpha1.Environment)
	if updated && asksForNoMore(&e.Spec, &before.Spec) {
		return wanted{}, nil
	}
	catalog, err := p.catalogOf(ctx, e)
	if err != nil {
		return wanted{}, err
	}
	// Requests of others may wait, which were made for the patches of before.
	if catalog == nil && updated && !equality.Semantic.DeepEqual(e.Spec.Patches, before.Spec.Patches) && access.PatchesNameObjects(e) {
		return wanted{refusal: fmt.Errorf("spec.patches: they may name Secrets or ConfigMaps, and of which namespace is not known "+
			"while AppCatalog %s does not exist: create the catalog first", e.Spec.CatalogRef.Name)}, nil
	}
	namesMore := len(e.Spec.Include) > 0 && (!updated || !equality.Semantic.DeepEqual(e.Spec.Include, before.Spec.Include))
	if catalog == nil && namesMore {
		return wanted{refusal: fmt.Errorf("spec.include: it names objects, and of which namespace is not known "+
			"while AppCatalog %s does not exist: create the catalog first", e.Spec.CatalogRef.Name)}, nil
	}
	permissions, err := p.synced(ctx, e, catalog)
	return wanted{permissions: append(access.OfAccount(e), permissions...)}, err
}

// asksForNoMore says whether an environment has nothing written that it had not before. Everything counts but what is left out
// here: automation that ends, or only shows what it would do; when it works, by the rights of whoever has turned it on; how long
// the environment lives and what can be gone back to; and that what it wrote stays.
func asksForNoMore(spec, before *v1alpha1.EnvironmentSpec) bool {
	was := before.DeepCopy()
	was.SyncWindows, was.TTL, was.HistoryLimit = spec.SyncWindows, spec.TTL, spec.HistoryLimit
	if !spec.AutoSync {
		was.AutoSync = false
	}
	if spec.Shadow {
		was.Shadow = true
	}
	if spec.PinnedRevision == nil {
		was.PinnedRevision = nil
	}
	if spec.DeletionPolicy == v1alpha1.DeletionPolicyOrphan {
		was.DeletionPolicy = spec.DeletionPolicy
	}
	return equality.Semantic.DeepEqual(spec, was)
}

// doneFor is what a sync of an environment does.
func (p *Plugin) doneFor(ctx context.Context, e *v1alpha1.Environment) (wanted, error) {
	catalog, err := p.catalogOf(ctx, e)
	if err != nil {
		return wanted{}, err
	}
	permissions, err := p.synced(ctx, e, catalog)
	return wanted{permissions: permissions}, err
}

// synced is what syncs of an environment take now. One that finds the target gone later asks again.
func (p *Plugin) synced(ctx context.Context, e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) ([]access.Permission, error) {
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

// catalogOf returns the catalog of an environment, nil if there is none.
func (p *Plugin) catalogOf(ctx context.Context, e *v1alpha1.Environment) (*v1alpha1.AppCatalog, error) {
	catalog, err := p.references.AppCatalog(ctx, cmp.Or(e.Spec.CatalogRef.Namespace, e.Namespace), e.Spec.CatalogRef.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}
	return catalog, nil
}

// wantedByRequest is what a request at a subresource makes the server do. Nothing is asked when there is nothing that it could
// be for: whoever carries it out says so.
func (p *Plugin) wantedByRequest(ctx context.Context, a admission.Attributes) (wanted, error) {
	e, err := p.environmentOf(ctx, a)
	if apierrors.IsNotFound(err) || err == nil && e == nil {
		return wanted{}, nil
	}
	if err != nil {
		return wanted{}, err
	}
	return p.doneFor(ctx, e)
}

// environmentOf is the environment that a request has something written in, nil if there is none such.
func (p *Plugin) environmentOf(ctx context.Context, a admission.Attributes) (*v1alpha1.Environment, error) {
	switch a.GetResource().Resource + "/" + a.GetSubresource() {
	case "environments/sync", "environments/resolve":
		return p.environment(ctx, a.GetNamespace(), a.GetName())
	case "environments/rollback":
		e, err := p.environment(ctx, a.GetNamespace(), a.GetName())
		if err == nil {
			e = e.DeepCopy()
			e.Spec.PinnedRevision = new(int64) // Whatever the revision is, it can bring what the catalog does not offer now.
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
