// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// all selects every operation, group, version or resource.
const all = "*"

// rulesSize is the size of the rules of one object. An object that exceeds a limit is not validated further.
type rulesSize struct{ rules, entries, types int }

func (s *rulesSize) add(rule *configbutler.ResourceRule) {
	s.rules++
	s.entries += len(rule.Operations) + len(rule.APIGroups) + len(rule.APIVersions) + len(rule.Resources)
	s.types += max(1, len(rule.APIGroups)) * max(1, len(rule.Resources))
}

// validate rejects objects that would cause too much work.
func (s *rulesSize) validate(path *field.Path) field.ErrorList {
	switch {
	case s.rules > v1alpha1.MaxRules:
		return field.ErrorList{field.TooMany(path, s.rules, v1alpha1.MaxRules)}
	case s.entries > v1alpha1.MaxRuleEntriesInAll:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
			"its rules have %d operations, groups, versions and resources in all, and may have at most %d: use *, or more than one object",
			s.entries, v1alpha1.MaxRuleEntriesInAll))}
	case s.types > v1alpha1.MaxRuleTypes:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf(
			"its rules name %d types in all, each group with each resource of a rule, and may name at most %d: "+
				"use *, or name each type as plural.group", s.types, v1alpha1.MaxRuleTypes))}
	}
	return nil
}

func validateResourceRule(rule *configbutler.ResourceRule, path *field.Path) field.ErrorList {
	errs := validateOperations(rule.Operations, path.Child("operations"))
	errs = append(errs, validateNames(rule.APIGroups, refusedGroup, path.Child("apiGroups"))...)
	errs = append(errs, validateNames(rule.APIVersions, refusedVersion, path.Child("apiVersions"))...)
	return append(errs, validateNames(rule.Resources, refusedResource, path.Child("resources"))...)
}

func validateOperations(operations []configbutler.Operation, path *field.Path) field.ErrorList {
	if n := len(operations); n > v1alpha1.MaxRuleEntries {
		return field.ErrorList{field.TooMany(path, n, v1alpha1.MaxRuleEntries)}
	}
	errs := validateSet(operations, path)
	for i, operation := range operations {
		errs = append(errs, validateOneOf(operation, path.Index(i), configbutler.OperationAll,
			configbutler.OperationCreate, configbutler.OperationUpdate, configbutler.OperationDelete)...)
	}
	return errs
}

// validateNames validates a set of names or a single *. refused returns why a name is invalid.
func validateNames(names []string, refused func(string) string, path *field.Path) field.ErrorList {
	if n := len(names); n > v1alpha1.MaxRuleEntries {
		return field.ErrorList{field.TooMany(path, n, v1alpha1.MaxRuleEntries)}
	}
	errs := validateSet(names, path)
	for i, name := range names {
		if detail := refused(name); name != all && detail != "" {
			errs = append(errs, field.Invalid(path.Index(i), name, detail))
		}
	}
	return errs
}

// validateSet rejects duplicates, and other values beside *.
func validateSet[T ~string](names []T, path *field.Path) field.ErrorList {
	errs := validateUnique(names, path)
	if len(names) > 1 && slices.Contains(names, all) {
		errs = append(errs, field.Invalid(path, names, "must not list anything beside *, which stands for all"))
	}
	return errs
}

func refusedGroup(group string) string {
	if group == "" || len(utilvalidation.IsDNS1123Subdomain(group)) == 0 {
		return ""
	}
	return `must be an API group such as apps, "" for the core group, or * for every group`
}

func refusedVersion(version string) string {
	if len(utilvalidation.IsDNS1035Label(version)) == 0 {
		return ""
	}
	return "must be a version such as v1, or *"
}

func refusedResource(entry string) string {
	name, subresource, hasSubresource := strings.Cut(entry, "/")
	plural, group, hasGroup := strings.Cut(name, ".")
	if isPluralOrAll(plural) &&
		(!hasGroup || len(utilvalidation.IsDNS1123Subdomain(group)) == 0) &&
		(!hasSubresource || isPluralOrAll(subresource)) {
		return ""
	}
	return "must be a plural in lower case such as deployments, plural.group such as deployments.apps, " +
		"either with /subresource, or * for every resource"
}

func isPluralOrAll(name string) bool {
	return name == all || len(utilvalidation.IsDNS1123Label(name)) == 0
}
