// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/kube/patch"
)

// validatePatches compiles patches as they are compiled for objects.
func validatePatches(patches []configbutler.Patch, path *field.Path) field.ErrorList {
	read := make([]patch.Patch, len(patches))
	for i, p := range patches {
		if errs := validateSelectorSize(p.Target.LabelSelector, path.Index(i).Child("target", "labelSelector")); len(errs) > 0 {
			return errs
		}
		read[i] = patch.Patch{Target: patch.Target(p.Target), Type: patch.Type(p.Type), Patch: p.Patch}
	}
	_, errs := patch.Compile(read, path)
	return errs
}
