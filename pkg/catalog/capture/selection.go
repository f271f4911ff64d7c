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

// Selection is which workloads of its source a catalog holds.
type Selection struct {
	named sets.Set[v1alpha1.WorkloadReference]
	// byLabels says that there is a selector; requirements are what it asks for.
	byLabels     bool
	requirements labels.Requirements
	// hidden are labels that the selector asks for and that a captured manifest may lack although the workload had them.
	hidden sets.Set[string]
}

// NewSelection reads what a catalog selects. Validation has refused what it fails on.
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
		if ignored || !isContent(requirement.Key()) {
			out.hidden.Insert(requirement.Key())
		}
	}
	return out, nil
}

// mayHideLabels says whether a rule can leave labels out of a manifest.
func mayHideLabels(rule v1alpha1.IgnoreRule) bool {
	return len(rule.Managers) > 0 || slices.ContainsFunc(rule.Fields, func(pointer string) bool {
		return strings.HasPrefix(pointer, "/metadata/labels")
	})
}

// isContent says whether the manifest of every workload that has a label of this key has it, too.
func isContent(key string) bool {
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

// Selects says whether an object of the source, as it is now, is one of the catalog's workloads: it is named, or its labels
// match and no other object controls it.
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

// Stays says whether a workload that the catalog holds, and that the source does not have or that is not selected any more,
// stays in the catalog as one that is missing. It does as long as the spec names it, or selects it as it was when it was
// captured: then it is the source that has changed. Otherwise an editor has taken it out. The manifest is nil when it
// is too large to be kept, which speaks for staying.
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
