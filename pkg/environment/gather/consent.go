// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/rights"
)

// Rights says whether users still have their permissions for whom something is done.
type Rights interface {
	// Check says in a sentence what of permissions who does not have; empty: nothing.
	Check(ctx context.Context, who rights.Holder, permissions []rights.Permission) (lost string, err error)
}

var _ Rights = &rights.Standing{}

// Withheld returns the types of which nothing is copied from the source of a catalog, with why: the editor of the catalog, who
// consents to it, may not read them any more, or it cannot be found out whether the editor may. Shared Secrets take an editor who is
// known. The other types do not, as catalogs of earlier versions have none.
func (g *Gatherer) Withheld(ctx context.Context, catalog *v1alpha1.AppCatalog) (plan.Withheld, error) {
	withheld := plan.Withheld{}
	editor, known := rights.Sharing(catalog)
	for of, permission := range rights.OfCopies(catalog) {
		if !known {
			if of == v1alpha1.DependencySecret {
				withheld[of] = plan.Withholding{Reason: v1alpha1.ReasonPermissionLost, Message: fmt.Sprintf(
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
	permissions := rights.OfCopying(r.Environment, catalog)
	if r.Action == v1alpha1.SyncActionCluster {
		for _, record := range r.Index {
			if permission, ok := rights.OfPatched(catalog, record.Type); ok && record.ByPatches {
				permissions[record.Type] = permission
			}
		}
	}
	for of, permission := range permissions {
		if err := r.ask(ctx, r.Situation.Withheld, of, *r.requester, permission); err != nil {
			return err
		}
	}
	return nil
}

// ask withholds objects of a type unless who has a permission.
func (g *Gatherer) ask(
	ctx context.Context, withheld plan.Withheld, of v1alpha1.DependencyType, who rights.Holder, permission rights.Permission,
) error {
	lost, err := g.Rights.Check(ctx, who, []rights.Permission{permission})
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		withheld[of] = plan.Withholding{Reason: v1alpha1.ReasonUnreachable, Message: fmt.Sprintf(
			"it is not known whether %s may still %s: %v", who, permission, err)}
	case lost != "":
		withheld[of] = plan.Withholding{Reason: v1alpha1.ReasonPermissionLost, Message: lost}
	}
	return nil
}
