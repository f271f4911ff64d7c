// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// AccessReviewer says whether users still have their permissions for whom something is done.
type AccessReviewer interface {
	// Check says in a sentence what of permissions who does not have; empty: nothing.
	Check(ctx context.Context, who access.Holder, permissions []access.Permission) (lost string, err error)
}

var _ AccessReviewer = &access.Reviews{}

// Withheld returns the types of which nothing is copied from the source of a catalog, with why: the editor of the catalog, who
// consents to it, may not read them any more, or it cannot be found out whether the editor may. Shared Secrets take an editor who is
// known. The other types do not, as catalogs of earlier versions have none.
func (g *StateReader) Withheld(ctx context.Context, catalog *v1alpha1.AppCatalog) (plan.Denied, error) {
	withheld := plan.Denied{}
	editor, known := access.Sharing(catalog)
	for of, permission := range access.OfCopies(catalog) {
		if !known {
			if of == v1alpha1.DependencySecret {
				withheld[of] = plan.Denial{Reason: v1alpha1.ReasonPermissionLost, Message: fmt.Sprintf(
					"it is not known who shares them: let a user who may %s set spec.previewOnly of AppCatalog %s/%s to true and back",
					permission, catalog.Namespace, catalog.Name)}
			}
			continue
		}
		if err := g.ask(ctx, withheld, of, editor, permission); err != nil {
			return nil, err
		}
	}
	return withheld, nil
}

// askRequester withholds what is copied by the permissions of who has the environment synced, and who may not read it any more. Much
// may have changed since the request was made: it may have waited for a window. A refresh copies what patches referred to when the
// environment was last synced, also if they do not any more.
func (r *reading) askRequester(ctx context.Context, catalog *v1alpha1.AppCatalog) error {
	if r.requester == nil {
		return nil
	}
	permissions := access.OfCopying(r.Environment, catalog)
	if r.Action == v1alpha1.SyncActionCluster {
		for _, record := range r.Index {
			if permission, ok := access.OfPatched(catalog, record.Type); ok && record.ByPatches {
				permissions[record.Type] = permission
			}
		}
	}
	for of, permission := range permissions {
		if err := r.ask(ctx, r.Input.Denied, of, *r.requester, permission); err != nil {
			return err
		}
	}
	return nil
}

// included finds out where the custom resources are that spec.include names, and withholds those that cannot be copied: the requester
// may not read them, or the cluster does not have such a resource. Their kinds tell which right that takes; of a kind whose resource is
// another one, the requester has not been asked about the right that matters.
func (r *reading) included(ctx context.Context, catalog *v1alpha1.AppCatalog) error {
	for _, object := range r.Environment.Spec.Include {
		permission, isCustom := access.OfIncluded(object, catalog)
		if !isCustom {
			continue
		}
		key := plan.KeyOfIncluded(object)
		r.versions[key] = object.Resource().Version
		if why := r.unservable(key, object); why != "" {
			r.DeniedObjects[key] = plan.Denial{Reason: v1alpha1.ReasonRefused, Message: why}
			continue
		}
		if r.requester == nil {
			continue
		}
		why, withheld, err := r.review(ctx, *r.requester, permission)
		if err != nil {
			return err
		}
		if withheld {
			r.DeniedObjects[key] = why
		}
	}
	return nil
}

// unservable says why an object that spec.include names cannot be read and written, empty if it can.
func (r *reading) unservable(key plan.Key, object v1alpha1.IncludedObject) string {
	resource := object.Resource()
	mapping, err := r.Mapper.RESTMapping(key.GroupKind, resource.Version)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Sprintf("the cluster has no kind %s in %s", object.Kind, object.APIVersion)
	case err != nil:
		return fmt.Sprintf("the resource of the kind %s in %s cannot be found: %v", object.Kind, object.APIVersion, err)
	case mapping.Resource != resource:
		return fmt.Sprintf("the resource of the kind %s is %s, and only %s could be copied", object.Kind, mapping.Resource.GroupResource(),
			resource.GroupResource())
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return fmt.Sprintf("objects of the kind %s are in no namespace", object.Kind)
	}
	return ""
}

// ask withholds objects of a type unless who has a permission.
func (g *StateReader) ask(
	ctx context.Context, withheld plan.Denied, of v1alpha1.DependencyType, who access.Holder, permission access.Permission,
) error {
	why, is, err := g.review(ctx, who, permission)
	if is {
		withheld[of] = why
	}
	return err
}

// review says why something is withheld that takes a permission, if it is.
func (g *StateReader) review(ctx context.Context, who access.Holder, permission access.Permission) (why plan.Denial, is bool, err error) {
	lost, err := g.Rights.Check(ctx, who, []access.Permission{permission})
	switch {
	case err != nil && ctx.Err() != nil:
		return why, false, err
	case err != nil:
		return plan.Denial{Reason: v1alpha1.ReasonUnreachable, Message: fmt.Sprintf(
			"it is not known whether %s may still %s: %v", who, permission, err)}, true, nil
	case lost != "":
		return plan.Denial{Reason: v1alpha1.ReasonPermissionLost, Message: lost}, true, nil
	}
	return why, false, nil
}
