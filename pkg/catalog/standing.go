// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// permitted returns the catalogs of a namespace whose editors may still read what they show. The others stay as they are, and
// say so; those of which that cannot be found out wait. It has the namespace looked at again when the answers are out of date, also
// if nothing changes in it.
func (c *catalogs) permitted(
	ctx context.Context, namespace string, following []*v1alpha1.AppCatalog,
) (able []*v1alpha1.AppCatalog, err error) {
	var errs []error
	for _, catalog := range following {
		lost, err := c.lostBy(ctx, catalog)
		if err != nil {
			errs = append(errs, fmt.Errorf("find out what the editor of AppCatalog %s/%s may read: %w", catalog.Namespace, catalog.Name, err))
			continue
		}
		c.lost.set(catalog.UID, lost)
		switch {
		case !lost.ok():
			c.queue.AddAfter(namespace, access.DeniedTTL)
		case toldOfLoss(catalog):
			// What it has missed comes with the next batch, when it says itself that it goes on.
			c.intake.Resync(namespace, pending.Requested)
		default:
			c.queue.AddAfter(namespace, access.AllowedTTL)
			able = append(able, catalog)
		}
	}
	return able, utilerrors.NewAggregate(errs)
}

// lostBy says why a catalog may not be brought up to date any more.
func (c *catalogs) lostBy(ctx context.Context, catalog *v1alpha1.AppCatalog) (verdict, error) {
	who, known := access.Editing(catalog)
	if !known {
		return verdict{}, nil
	}
	lost, err := c.shared.Access.Check(ctx, who, access.OfCatalog(catalog))
	if err != nil || lost == "" {
		return verdict{}, err
	}
	return verdict{v1alpha1.ReasonPermissionLost, lost}, nil
}

// toldOfLoss says whether a catalog tells that it may not be brought up to date.
func toldOfLoss(catalog *v1alpha1.AppCatalog) bool {
	ready := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonPermissionLost
}

// unhindered are the catalogs of a namespace that may be brought up to date, as far as is known.
func (c *catalogs) unhindered(namespace string) []*v1alpha1.AppCatalog {
	return slices.DeleteFunc(c.following(namespace), func(catalog *v1alpha1.AppCatalog) bool { return !c.lost.get(catalog.UID).ok() })
}
