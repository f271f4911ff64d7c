// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// all selects every operation, group, version or resource.
const all = "*"

func validateResourceRule(rule *configbutler.ResourceRule, path *field.Path) field.ErrorList {
	errs := validateOperations(rule.Operations, path.Child("operations"))
	errs = append(errs, validateNames(rule.APIGroups, refusedGroup, path.Child("apiGroups"))...)
	errs = append(errs, validateNames(rule.APIVersions, refusedVersion, path.Child("apiVersions"))...)
	return append(errs, validateNames(rule.Resources, refusedResource, path.Child("resources"))...)
}

func validateOperations(operations []configbutler.Operation, path *field.Path) field.ErrorList {
	errs := validateSet(operations, path)
	for i, operation := range operations {
		errs = append(errs, validateOneOf(operation, path.Index(i), configbutler.OperationAll,
			configbutler.OperationCreate, configbutler.OperationUpdate, configbutler.OperationDelete)...)
	}
	return errs
}

// validateNames validates a set of names or a single *. refused returns why a name is invalid.
func validateNames(names []string, refused func(string) string, path *field.Path) field.ErrorList {
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
