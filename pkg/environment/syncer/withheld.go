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

// Withheld returns the types that are not copied from the source of a catalog, each with the reason: the editor of the catalog, who
// consents to copying, can no longer read them, or that could not be checked. Sharing Secrets requires a known editor. The other types
// do not, because catalogs of earlier versions have no editor.
func (r *StateReader) Withheld(ctx context.Context, catalog *v1alpha1.AppCatalog) (plan.Denied, error) {
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
		if err := r.withholdUnless(ctx, withheld, of, editor, permission); err != nil {
			return nil, err
		}
	}
	return withheld, nil
}

// checkRequester withholds the types that are copied with the requester's permissions and that the requester can no longer read. The
// permissions may have changed since the request, for example while it waited for a sync window. A refresh also copies what patches
// referred to when the environment was last synced, and what the catalog referred to then.
func (r *stateReading) checkRequester(ctx context.Context, catalog *v1alpha1.AppCatalog) error {
	permissions := access.OfCopying(r.state.Environment, catalog)
	_, asked := permissions[v1alpha1.DependencySecret]
	r.state.SecretsByConsent = !asked
	if r.request.Requester == nil {
		return nil
	}
	if r.state.Action == v1alpha1.SyncActionCluster {
		for _, record := range r.state.Index {
			if permission, ok := access.OfPatched(catalog, record.Type); ok && record.ByPatches {
				permissions[record.Type] = permission
			}
		}
	}
	for of, permission := range permissions {
		if err := r.reader.withholdUnless(ctx, r.state.Denied, of, *r.request.Requester, permission); err != nil {
			return err
		}
	}
	return nil
}

// included records the API versions of the custom resources in spec.include, and withholds those that cannot be copied: the cluster
// does not serve the kind, or the requester cannot read it. The permission is derived from the kind, so kinds whose resource has
// another name are withheld as well: the permission that was checked would be the wrong one.
func (r *stateReading) included(ctx context.Context, catalog *v1alpha1.AppCatalog) error {
	for _, object := range r.state.Environment.Spec.Include {
		permission, isCustom := access.OfIncluded(object, catalog)
		if !isCustom {
			continue
		}
		key := plan.KeyOfIncluded(object)
		r.versions[key] = object.Resource().Version
		if why := r.unservable(key, object); why != "" {
			r.state.DeniedObjects[key] = plan.Denial{Reason: v1alpha1.ReasonRefused, Message: why}
			continue
		}
		if r.request.Requester == nil {
			continue
		}
		why, withheld, err := r.reader.review(ctx, *r.request.Requester, permission)
		if err != nil {
			return err
		}
		if withheld {
			r.state.DeniedObjects[key] = why
		}
	}
	return nil
}

// unservable returns why an object in spec.include cannot be read or written, empty if it can.
func (r *stateReading) unservable(key plan.Key, object v1alpha1.IncludedObject) string {
	resource := object.Resource()
	mapping, err := r.reader.Mapper.RESTMapping(key.GroupKind, resource.Version)
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

// withholdUnless withholds a type unless the holder has the permission.
func (r *StateReader) withholdUnless(
	ctx context.Context, withheld plan.Denied, of v1alpha1.DependencyType, who access.Holder, permission access.Permission,
) error {
	why, is, err := r.review(ctx, who, permission)
	if is {
		withheld[of] = why
	}
	return err
}

// review checks a permission, and returns the reason for withholding what requires it, if the holder lacks it.
func (r *StateReader) review(ctx context.Context, who access.Holder, permission access.Permission) (why plan.Denial, is bool, err error) {
	lost, err := r.Rights.Check(ctx, who, []access.Permission{permission})
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
