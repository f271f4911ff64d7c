// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// ValidateWatchRule validates a new WatchRule.
func ValidateWatchRule(rule *configbutler.WatchRule) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&rule.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadataPath)
	return append(errs, validateWatchRuleSpec(&rule.Spec, specPath)...)
}

// ValidateWatchRuleUpdate validates a changed WatchRule. Every field of the spec may change.
func ValidateWatchRuleUpdate(rule, old *configbutler.WatchRule) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&rule.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, validateWatchRuleSpec(&rule.Spec, specPath)...)
}

// ValidateWatchRuleStatusUpdate validates a changed status.
func ValidateWatchRuleStatusUpdate(rule, old *configbutler.WatchRule) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&rule.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, validateWatchRuleStatus(&rule.Status)...)
}

// ValidateWatchRuleStatusRequest also validates a status update of either kind of rule from a client. The author of the
// spec is recorded by the server.
func ValidateWatchRuleStatusRequest(status, old *configbutler.WatchRuleStatus) field.ErrorList {
	return validateEditedBy(status.EditedBy, old.EditedBy)
}

// ValidateClusterWatchRule validates a new ClusterWatchRule.
func ValidateClusterWatchRule(rule *configbutler.ClusterWatchRule) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&rule.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, metadataPath)
	return append(errs, validateClusterWatchRuleSpec(&rule.Spec, specPath)...)
}

// ValidateClusterWatchRuleUpdate validates a changed ClusterWatchRule. Every field of the spec may change.
func ValidateClusterWatchRuleUpdate(rule, old *configbutler.ClusterWatchRule) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&rule.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, validateClusterWatchRuleSpec(&rule.Spec, specPath)...)
}

// ValidateClusterWatchRuleStatusUpdate validates a changed status.
func ValidateClusterWatchRuleStatusUpdate(rule, old *configbutler.ClusterWatchRule) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&rule.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, validateWatchRuleStatus(&rule.Status)...)
}

func validateWatchRuleSpec(spec *configbutler.WatchRuleSpec, path *field.Path) field.ErrorList {
	errs := validateObjectReference(spec.DestinationRef, path.Child("destinationRef"))
	errs = append(errs, validateSelector(spec.ObjectSelector, path.Child("objectSelector"))...)
	path = path.Child("rules")
	var size rulesSize
	for i := range spec.Rules {
		size.add(&spec.Rules[i])
	}
	if problems := size.validate(path); len(problems) > 0 {
		return append(errs, problems...)
	}
	names := make([]string, len(spec.Rules))
	for i := range spec.Rules {
		names[i] = spec.Rules[i].Name
		errs = append(errs, validateResourceRule(&spec.Rules[i], path.Index(i))...)
	}
	return append(errs, validateRuleNames(names, path)...)
}

func validateClusterWatchRuleSpec(spec *configbutler.ClusterWatchRuleSpec, path *field.Path) field.ErrorList {
	errs := validateNamespacedObjectReference(spec.DestinationRef, path.Child("destinationRef"))
	path = path.Child("rules")
	var size rulesSize
	for i := range spec.Rules {
		size.add(&spec.Rules[i].ResourceRule)
	}
	if problems := size.validate(path); len(problems) > 0 {
		return append(errs, problems...)
	}
	names := make([]string, len(spec.Rules))
	for i := range spec.Rules {
		rule, path := &spec.Rules[i], path.Index(i)
		names[i] = rule.Name
		errs = append(errs, validateResourceRule(&rule.ResourceRule, path)...)
		errs = append(errs, validateScope(rule.Scope, rule.NamespaceSelector, path)...)
	}
	return append(errs, validateRuleNames(names, path)...)
}

func validateScope(scope configbutler.ResourceScope, namespaces *metav1.LabelSelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if scope == "" {
		errs = append(errs, field.Required(path.Child("scope"), "must be Cluster or Namespaced"))
	} else {
		errs = validateOneOf(scope, path.Child("scope"), configbutler.ScopeCluster, configbutler.ScopeNamespaced)
	}
	path = path.Child("namespaceSelector")
	if namespaces != nil && scope != configbutler.ScopeNamespaced {
		errs = append(errs, field.Forbidden(path, "may only be set when scope is Namespaced"))
	}
	return append(errs, validateSelector(namespaces, path)...)
}

// validateRuleNames rejects duplicate names of rules. The name is optional.
func validateRuleNames(names []string, path *field.Path) field.ErrorList {
	if len(names) == 0 {
		return field.ErrorList{field.Required(path, "at least one rule is needed")}
	}
	var errs field.ErrorList
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		namePath := path.Index(i).Child("name")
		switch problems := apivalidation.NameIsDNSLabel(name, false); {
		case name == "":
			continue
		case len(problems) > 0:
			errs = append(errs, field.Invalid(namePath, name, problems[0]))
		case seen[name]:
			errs = append(errs, field.Duplicate(namePath, name))
		}
		seen[name] = true
	}
	return errs
}

func validateWatchRuleStatus(status *configbutler.WatchRuleStatus) field.ErrorList {
	errs := validateObserved(status.ObservedGeneration, status.Conditions)
	for i, resource := range status.MatchedResourceTypes {
		errs = append(errs, validateResourceType(resource, statusPath.Child("matchedResourceTypes").Index(i))...)
	}
	return errs
}
