// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/ignorerules"
	"github.com/configbutler/slipstream/pkg/kube/ignore"
	"github.com/configbutler/slipstream/pkg/kube/patch"
)

// Rules are the compiled rules of the spec of a catalog.
type Rules struct {
	Selection Selection
	Ignored   ignore.Rules
	Patches   patch.Patches
}

// InvalidError is returned by NewRules for an invalid spec. Reason is the reason of the condition Ready of the catalog.
type InvalidError struct {
	Reason string
	Err    error
}

// Error returns the message of the condition.
func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Err }

// NewRules compiles the rules of a spec. It returns an *InvalidError for a spec that validation rejects.
func NewRules(spec *v1alpha1.AppCatalogSpec) (rules Rules, err error) {
	if rules.Selection, err = NewSelection(spec); err != nil {
		return Rules{}, &InvalidError{v1alpha1.ReasonSelectorInvalid, err}
	}
	if rules.Ignored, err = ignorerules.Compile(spec.Ignore); err != nil {
		return Rules{}, &InvalidError{v1alpha1.ReasonIgnoreInvalid, fmt.Errorf("spec.ignore: %w", err)}
	}
	if rules.Patches, err = compilePatches(spec.Patches); err != nil {
		return Rules{}, &InvalidError{v1alpha1.ReasonPatchFailed, err}
	}
	return rules, nil
}

func compilePatches(from []v1alpha1.Patch) (patch.Patches, error) {
	patches := make([]patch.Patch, len(from))
	for i, p := range from {
		patches[i] = patch.Patch{Target: patch.Target(p.Target), Type: patch.Type(p.Type), Patch: p.Patch}
	}
	compiled, errs := patch.Compile(patches, field.NewPath("spec", "patches"))
	return compiled, errs.ToAggregate()
}

// Render returns the manifest that a catalog offers for an object of the source: captured, then patched.
func Render(spec *v1alpha1.AppCatalogSpec, object *unstructured.Unstructured) (Manifest, error) {
	rules, err := NewRules(spec)
	if err != nil {
		return Manifest{}, err
	}
	content, err := Capture(object, rules.Ignored)
	if err != nil {
		return Manifest{}, err
	}
	return content.Patched(rules.Patches)
}
