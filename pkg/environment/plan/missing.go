// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/references"
)

// missingCheck finds the referenced objects that the source lacks or that are never copied.
type missingCheck struct {
	in        *Input
	objects   *inputObjects
	selection *selection
	report    *report
}

// run reports the referenced objects that are missing, and records them in the selection.
func (c missingCheck) run() {
	for _, ref := range c.selection.refs {
		key := keyOf(ref.Target)
		if ref.Type == references.PersistentVolumeClaim {
			c.checkClaim(ref)
			continue
		}
		if _, ok := c.objects.source[key]; ok {
			continue
		}
		live := c.objects.live[key]
		// A target of patches alone may belong to the environment's users.
		isOnlyPatched := !c.selection.unpatchedRefs.Has(ref.Target) && !c.in.includes(key)
		if isOnlyPatched && live != nil && c.in.ownerOf(live) == ownerForeign {
			continue
		}
		c.selection.missing.Insert(key)
		c.report.failMissing(key, ref.Optional())
		if ref.Type == references.Service && !c.in.Denied.Has(key.GroupKind) && live == nil {
			c.report.warn(fmt.Sprintf("%s is not in %s: %s", key, c.in.SourceNamespace, referredBy(ref)))
		}
	}
	c.report.failDeniedServices()
}

// checkClaim reports that the target lacks a PersistentVolumeClaim, which is never copied.
func (c missingCheck) checkClaim(ref references.Reference) {
	if c.objects.live[keyOf(ref.Target)] == nil {
		c.report.addNotCopied(string(ref.Type), ref.Name, v1alpha1.NotCopiedHoldsData)
		c.report.warn(fmt.Sprintf("PersistentVolumeClaim %s is not copied, and %s does not have it: %s",
			ref.Name, c.in.Environment.Spec.TargetNamespace, referredBy(ref)))
	}
}
