// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// Selection selects the workloads of a source namespace that a catalog holds.
type Selection struct {
	named sets.Set[v1alpha1.WorkloadReference]
	// byLabels is true if there is a label selector. requirements are its requirements.
	byLabels     bool
	requirements labels.Requirements
	// hidden are labels in the selector that a captured manifest may lack although the workload had them.
	hidden sets.Set[string]
}

// NewSelection returns the selection of a spec. It fails only for a spec that validation rejects.
func NewSelection(spec *v1alpha1.AppCatalogSpec) (Selection, error) {
	out := Selection{named: sets.New(spec.Workloads...), hidden: sets.New[string]()}
	if spec.WorkloadSelector == nil {
		return out, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.WorkloadSelector)
	if err != nil {
		return Selection{}, fmt.Errorf("reading the workload selector: %w", err)
	}
	out.requirements, out.byLabels = selector.Requirements()
	ignored := slices.ContainsFunc(spec.Ignore, mayHideLabels)
	for _, requirement := range out.requirements {
		if ignored || !keepsLabel(requirement.Key()) {
			out.hidden.Insert(requirement.Key())
		}
	}
	return out, nil
}

// mayHideLabels reports whether a rule can remove labels from a manifest.
func mayHideLabels(rule v1alpha1.IgnoreRule) bool {
	return len(rule.Managers) > 0 || slices.ContainsFunc(rule.Fields, func(pointer string) bool {
		return strings.HasPrefix(pointer, "/metadata/labels")
	})
}

// keepsLabel reports whether the canonical form of all kinds of workloads keeps a label.
func keepsLabel(key string) bool {
	for kind, resource := range v1alpha1.WorkloadResources() {
		probe := &unstructured.Unstructured{}
		probe.SetGroupVersionKind(schema.GroupVersionKind{Group: resource.Group, Version: "v1", Kind: string(kind)})
		probe.SetLabels(map[string]string{key: ""})
		content, err := manifest.Canonical(probe)
		if err != nil || !labels.Set(content.GetLabels()).Has(key) {
			return false
		}
	}
	return true
}

// Selects reports whether an object of the source is selected: it is named, or its labels match and it is not controlled by another
// object.
func (s Selection) Selects(object *unstructured.Unstructured) bool {
	reference, ok := ReferenceTo(object)
	if !ok {
		return false
	}
	return s.named.Has(reference) ||
		s.byLabels && metav1.GetControllerOfNoCopy(object) == nil && s.matches(object.GetLabels())
}

func (s Selection) matches(of labels.Set) bool {
	return !slices.ContainsFunc(s.requirements, func(r labels.Requirement) bool { return !r.Matches(of) })
}

// Stays reports whether a held workload stays in the catalog as a missing one, although it was deleted in the source or is no longer
// selected. It stays if the spec names it, or selects it by the labels with which it was captured, because then the source has changed.
// Otherwise an editor has removed it. captured is nil for a manifest that is too large to be stored. Such a workload stays if the
// spec has a label selector.
func (s Selection) Stays(workload v1alpha1.WorkloadReference, captured *unstructured.Unstructured) bool {
	switch {
	case s.named.Has(workload):
		return true
	case !s.byLabels:
		return false
	case captured == nil:
		return true
	}
	of := labels.Set(captured.GetLabels())
	return !slices.ContainsFunc(s.requirements, func(r labels.Requirement) bool {
		unknown := s.hidden.Has(r.Key()) && !of.Has(r.Key())
		return !unknown && !r.Matches(of)
	})
}
