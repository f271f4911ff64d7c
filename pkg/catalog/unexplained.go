// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// explainInterval is how often it is looked whether the authors of changes are known.
const explainInterval = 100 * time.Millisecond

// unexplained says whether a namespace has changes whose authors are about to be known. What is read now would contain them,
// as the work of somebody else. Neither a batch nor anybody who asks waits longer than a change does for its author.
func (c *catalogs) unexplained(namespace string, following []*v1alpha1.AppCatalog) bool {
	if !c.authors.WaitingIn(namespace) {
		return false
	}
	now, longest := c.shared.Clock.Now(), c.config.AttributionMaxWait
	if due, some := c.intake.Due(namespace, c.window()+longest); some && due == 0 {
		return false
	}
	return !slices.ContainsFunc(following, func(catalog *v1alpha1.AppCatalog) bool {
		return slices.ContainsFunc(occasionsOf(catalog, now), func(o occasion) bool { return now.Sub(o.detected) > longest })
	})
}
