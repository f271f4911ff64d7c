// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/kube/ignore"
)

const (
	// maxManagerLength is the API server's limit for a field manager, in characters.
	maxManagerLength = 128
	// maxIgnoreRules and maxIgnoreNames limit the work for each object.
	maxIgnoreRules = 100
	maxIgnoreNames = 1000
	// maxIgnoreBytes limits the length of all fields, which take twenty times as much memory when they are compiled.
	maxIgnoreBytes = 64 << 10
)

var kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

func validateIgnore(rules []configbutler.IgnoreRule, path *field.Path) field.ErrorList {
	if n := len(rules); n > maxIgnoreRules {
		return field.ErrorList{field.TooMany(path, n, maxIgnoreRules)}
	}
	if errs := validateIgnoreSize(rules, path); len(errs) > 0 {
		return errs
	}
	var errs field.ErrorList
	for i, rule := range rules {
		path := path.Index(i)
		errs = append(errs, validateIgnoreTarget(rule.Target, path.Child("target"))...)
		if len(rule.Fields) == 0 && len(rule.Managers) == 0 {
			errs = append(errs, field.Required(path, "name fields, managers, or both"))
		}
		for j, pointer := range rule.Fields {
			errs = append(errs, validateFieldPointer(pointer, path.Child("fields").Index(j))...)
		}
		for j, manager := range rule.Managers {
			errs = append(errs, validateManager(manager, path.Child("managers").Index(j))...)
		}
	}
	return errs
}

// validateIgnoreSize limits what all rules name.
func validateIgnoreSize(rules []configbutler.IgnoreRule, path *field.Path) field.ErrorList {
	names, bytes := 0, 0
	for _, rule := range rules {
		names += len(rule.Fields) + len(rule.Managers)
		for _, pointer := range rule.Fields {
			bytes += len(pointer)
		}
	}
	switch {
	case names > maxIgnoreNames:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("its rules name %d fields and managers in all, and may name at most %d", names, maxIgnoreNames))}
	case bytes > maxIgnoreBytes:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("the fields of its rules have %d bytes in all, and may have at most %d", bytes, maxIgnoreBytes))}
	}
	return nil
}

func validateIgnoreTarget(target configbutler.IgnoreTarget, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if group := target.Group; group != nil && *group != "" && len(utilvalidation.IsDNS1123Subdomain(*group)) > 0 {
		errs = append(errs, field.Invalid(fldPath.Child("group"), *group,
			`must be an API group such as apps, "" for the core group, or absent for every group`))
	}
	if target.Kind != "" && !kindName.MatchString(target.Kind) {
		errs = append(errs, field.Invalid(fldPath.Child("kind"), target.Kind, "must be a kind such as Deployment, or empty for every kind"))
	}
	return append(errs, invalidUnless(content.IsPathSegmentName(target.Name), target.Name, fldPath.Child("name"))...)
}

func validateFieldPointer(pointer string, path *field.Path) field.ErrorList {
	if err := ignore.CheckPointer(pointer); err != nil {
		return field.ErrorList{field.Invalid(path, pointer, err.Error())}
	}
	return nil
}

func validateManager(manager string, path *field.Path) field.ErrorList {
	if n := utf8.RuneCountInString(manager); n == 0 || n > maxManagerLength ||
		strings.ContainsFunc(manager, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return field.ErrorList{field.Invalid(path, manager,
			"must be a field manager such as kube-controller-manager: 1 to 128 printable characters")}
	}
	return nil
}
