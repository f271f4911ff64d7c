// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// The parts of every object.
var (
	metadataPath = field.NewPath("metadata")
	specPath     = field.NewPath("spec")
	statusPath   = field.NewPath("status")
)

func validateObserved(generation int64, conditions []metav1.Condition) field.ErrorList {
	errs := apivalidation.ValidateNonnegativeField(generation, statusPath.Child("observedGeneration"))
	return append(errs, metav1validation.ValidateConditions(conditions, statusPath.Child("conditions"))...)
}

// validateOnlyTakenOut rejects entries that were not in the list before.
func validateOnlyTakenOut[E any](entries, before []E, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, entry := range entries {
		if !slices.ContainsFunc(before, func(b E) bool { return equality.Semantic.DeepEqual(b, entry) }) {
			errs = append(errs, field.Forbidden(path.Index(i),
				"only the server adds entries, and nobody changes them: they can stay as they are or be taken out"))
		}
	}
	return errs
}

func validateSecretReference(reference configbutler.SecretReference, path *field.Path) field.ErrorList {
	return validateReferenceName(reference.Name, path.Child("name"))
}

func validateObjectReference(reference configbutler.ObjectReference, path *field.Path) field.ErrorList {
	errs := validateReferenceName(reference.Name, path.Child("name"))
	if reference.Namespace != "" {
		errs = append(errs, validateReferenceNamespace(reference.Namespace, path.Child("namespace"))...)
	}
	return errs
}

func validateNamespacedObjectReference(reference configbutler.NamespacedObjectReference, path *field.Path) field.ErrorList {
	errs := validateReferenceName(reference.Name, path.Child("name"))
	return append(errs, validateReferenceNamespace(reference.Namespace, path.Child("namespace"))...)
}

func validateReferenceName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "name the object that is meant")}
	}
	return invalidUnless(apivalidation.NameIsDNSSubdomain(name, false), name, path)
}

func validateReferenceNamespace(namespace string, path *field.Path) field.ErrorList {
	if namespace == "" {
		return field.ErrorList{field.Required(path, "an object without a namespace must say in which one the other is")}
	}
	return invalidUnless(apivalidation.ValidateNamespaceName(namespace, false), namespace, path)
}

func invalidUnless(problems []string, value string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, value, problem))
	}
	return errs
}

func validateAccessPolicy(policy *configbutler.AccessPolicy, path *field.Path) field.ErrorList {
	if policy == nil {
		return nil
	}
	return validateNamespacedRules(policy.NamespacedRules, path.Child("namespacedRules"))
}

func validateCatalogAccessPolicy(policy *configbutler.CatalogAccessPolicy, path *field.Path) field.ErrorList {
	if policy == nil {
		return nil
	}
	return validateNamespacedRules(policy.NamespacedRules, path.Child("namespacedRules"))
}

func validateNamespacedRules(rules configbutler.NamespacedRules, path *field.Path) field.ErrorList {
	errs := validateOneOf(rules.Mode, path.Child("mode"), configbutler.AccessModeSameNamespace,
		configbutler.AccessModeAllNamespaces, configbutler.AccessModeFromSelector)
	path = path.Child("namespaceSelector")
	switch fromSelector := rules.Mode == configbutler.AccessModeFromSelector; {
	case fromSelector && rules.NamespaceSelector == nil:
		errs = append(errs, field.Required(path, "mode FromSelector needs it; AllNamespaces is the mode that admits every namespace"))
	case !fromSelector && rules.NamespaceSelector != nil:
		errs = append(errs, field.Forbidden(path, "must be absent unless mode is FromSelector"))
	}
	return append(errs, validateSelector(rules.NamespaceSelector, path)...)
}

func validateSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if errs := validateSelectorSize(selector, path); len(errs) > 0 {
		return errs
	}
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

// validateSelectorSize limits the labels, expressions and values of expressions of a selector, nil or not.
func validateSelectorSize(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	n := len(selector.MatchLabels) + len(selector.MatchExpressions)
	for _, expression := range selector.MatchExpressions {
		n += len(expression.Values)
	}
	if n <= v1alpha1.MaxSelectorEntries {
		return nil
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
		"has %d labels, expressions and values, and may have at most %d", n, v1alpha1.MaxSelectorEntries))}
}

func validateResourceType(resource configbutler.ResourceType, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if resource.Version == "" {
		errs = append(errs, field.Required(path.Child("version"), "must be a version such as v1"))
	}
	if resource.Resource == "" {
		errs = append(errs, field.Required(path.Child("resource"), "must be a plural such as deployments"))
	}
	return errs
}

// validateOneOf validates an enumerated value. The error lists the choices.
func validateOneOf[T ~string](value T, path *field.Path, choices ...T) field.ErrorList {
	if slices.Contains(choices, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, choices)}
}

// validateUnique rejects duplicates. It runs in linear time: a request can have hundreds of thousands of values.
func validateUnique[T ~string](values []T, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[T]bool, len(values))
	for i, value := range values {
		if seen[value] {
			errs = append(errs, field.Duplicate(path.Index(i), value))
		}
		seen[value] = true
	}
	return errs
}

// validateProxyReference validates proxySecretRef, which can be absent, of what is at path.
func validateProxyReference(reference *configbutler.SecretReference, path *field.Path) field.ErrorList {
	if reference == nil {
		return nil
	}
	return validateSecretReference(*reference, path.Child("proxySecretRef"))
}
