// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"regexp"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// seenHash matches a hash or SeenRemoved.
var seenHash = regexp.MustCompile("^([0-9a-f]{1,128}|" + v1alpha1.SeenRemoved + ")?$")

// ValidateEnvironmentDependency validates a new record.
func ValidateEnvironmentDependency(record *configbutler.EnvironmentDependency) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&record.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadataPath)
	return append(errs, validateEnvironmentDependencyRecord(record)...)
}

// ValidateEnvironmentDependencyUpdate validates a changed record.
func ValidateEnvironmentDependencyUpdate(record, old *configbutler.EnvironmentDependency) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&record.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, validateEnvironmentDependencyRecord(record)...)
}

func validateEnvironmentDependencyRecord(record *configbutler.EnvironmentDependency) field.ErrorList {
	status, path := &record.Status, statusPath
	errs := validateDependencyType(status.Type, path.Child("type"))
	errs = append(errs, invalidUnless(environmentName(status.Environment, false), status.Environment, path.Child("environment"))...)
	errs = append(errs, validateNamespacedObjectReference(status.Source, path.Child("source"))...)
	errs = append(errs, validateNamespacedObjectReference(status.Target, path.Child("target"))...)
	name := v1alpha1.EnvironmentDependencyName(status.Environment, v1alpha1.DependencyType(status.Type), status.Target.Name)
	if len(errs) == 0 && name != record.Name {
		errs = append(errs, field.NotSupported(metadataPath.Child("name"), record.Name, []string{name}))
	}
	if !seenHash.MatchString(status.SeenHash) {
		errs = append(errs, field.Invalid(path.Child("seenHash"), status.SeenHash,
			"must be a hash, in hexadecimal, or "+v1alpha1.SeenRemoved+", or empty"))
	}
	errs = append(errs, validateUnique(status.Keys, path.Child("keys"))...)
	if n := len(status.Keys); n > v1alpha1.MaxKeys {
		errs = append(errs, field.TooMany(path.Child("keys"), n, v1alpha1.MaxKeys))
	}
	return append(errs, validateReferrers(status.ReferredBy, path.Child("referredBy"))...)
}

func validateReferrers(referrers []configbutler.DependencyReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(referrers); n > v1alpha1.MaxReferrers {
		errs = append(errs, field.TooMany(path, n, v1alpha1.MaxReferrers))
	}
	seen := make(map[configbutler.DependencyReference]bool, len(referrers))
	for i, referrer := range referrers {
		path := path.Index(i)
		if !kindName.MatchString(referrer.Kind) {
			errs = append(errs, field.Invalid(path.Child("kind"), referrer.Kind, "must be a kind such as Deployment"))
		}
		errs = append(errs, validateReferenceName(referrer.Name, path.Child("name"))...)
		if referrer.Field == "" {
			errs = append(errs, field.Required(path.Child("field"), "must say where the object refers to it"))
		}
		if seen[referrer] {
			errs = append(errs, field.Duplicate(path, referrer))
		}
		seen[referrer] = true
	}
	return errs
}
