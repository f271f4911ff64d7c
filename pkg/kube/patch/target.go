// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"regexp"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// selector is a compiled target.
type selector struct {
	group      *string
	kind, name string
	labels     labels.Selector
}

func compileTarget(target Target, path *field.Path) (selector, field.ErrorList) {
	var errs field.ErrorList
	if group := target.Group; group != nil && *group != "" && len(validation.IsDNS1123Subdomain(*group)) > 0 {
		errs = append(errs, field.Invalid(path.Child("group"), *group,
			`must be an API group such as apps, "" for the core group, or absent for every group`))
	}
	switch {
	case target.Kind == "":
		errs = append(errs, field.Required(path.Child("kind"), "name the kind that is patched, such as Deployment"))
	case !kindName.MatchString(target.Kind):
		errs = append(errs, field.Invalid(path.Child("kind"), target.Kind, "must be a kind such as Deployment"))
	}
	for _, message := range content.IsPathSegmentName(target.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), target.Name, message))
	}
	selected, invalid := compileLabels(target.LabelSelector, path.Child("labelSelector"))
	return selector{target.Group, target.Kind, target.Name, selected}, append(errs, invalid...)
}

func compileLabels(selector *metav1.LabelSelector, path *field.Path) (labels.Selector, field.ErrorList) {
	if selector == nil {
		return labels.Everything(), nil
	}
	if errs := metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path); len(errs) > 0 {
		return nil, errs
	}
	selected, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return selected, nil
}

func (s selector) selects(object *unstructured.Unstructured) bool {
	return (s.group == nil || *s.group == object.GroupVersionKind().Group) && s.kind == object.GetKind() &&
		(s.name == "" || s.name == object.GetName()) && s.labels.Matches(labels.Set(object.GetLabels()))
}
