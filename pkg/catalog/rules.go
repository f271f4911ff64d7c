// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/kube/ignore"
	"github.com/configbutler/slipstream/pkg/kube/patch"
)

// rules are what the spec of a catalog says about workloads.
type rules struct {
	selection capture.Selection
	ignored   ignore.Rules
	patches   patch.Patches
}

// readRules reads a spec. Validation has refused what it fails on, with a *problem.
func readRules(spec *v1alpha1.AppCatalogSpec) (out rules, err error) {
	if out.selection, err = capture.NewSelection(spec); err != nil {
		return rules{}, &problem{v1alpha1.ReasonSelectorInvalid, err}
	}
	if out.ignored, err = readIgnore(spec.Ignore); err != nil {
		return rules{}, &problem{v1alpha1.ReasonIgnoreInvalid, fmt.Errorf("spec.ignore: %w", err)}
	}
	if out.patches, err = readPatches(spec.Patches); err != nil {
		return rules{}, &problem{v1alpha1.ReasonPatchFailed, err}
	}
	return out, nil
}

func readIgnore(from []v1alpha1.IgnoreRule) (ignore.Rules, error) {
	read := make([]ignore.Rule, len(from))
	for i, rule := range from {
		read[i] = ignore.Rule{
			Group: rule.Target.Group, Kind: rule.Target.Kind, Name: rule.Target.Name, Fields: rule.Fields, Managers: rule.Managers,
		}
	}
	return ignore.Compile(read)
}

func readPatches(from []v1alpha1.Patch) (patch.Patches, error) {
	read := make([]patch.Patch, len(from))
	for i, p := range from {
		read[i] = patch.Patch{Target: patch.Target(p.Target), Type: patch.Type(p.Type), Patch: p.Patch}
	}
	patches, errs := patch.Compile(read, field.NewPath("spec", "patches"))
	return patches, errs.ToAggregate()
}
