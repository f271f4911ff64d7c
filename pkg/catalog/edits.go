// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// answer does what somebody has asked for of a catalog. Before an edit is taken over, what the source has changed that no
// event has told of yet is recorded as its own. If the catalog was held back, it is the edit that lets the source's changes in.
func (c *catalogs) answer(ctx context.Context, catalog *v1alpha1.AppCatalog, o occasion, seen sight) error {
	if o.generation > 0 && !meta.IsStatusConditionTrue(catalog.Status.Conditions, v1alpha1.ConditionPaused) {
		if err := c.keeper.carryOut(ctx, catalog, sourceFirst(o), seen); err != nil {
			return err
		}
	}
	return c.keeper.carryOut(ctx, catalog, o, seen)
}

// sourceFirst is the occasion of what the source has changed by itself before an edit.
func sourceFirst(edit occasion) occasion {
	return occasion{batch: "before-" + edit.batch, gathered: true, detected: edit.detected}
}
