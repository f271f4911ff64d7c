// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// ValidateChange validates a new Change.
func ValidateChange(change *configbutler.Change) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&change.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadataPath)
	return append(errs, validateChangeSpec(&change.Spec, specPath)...)
}

// ValidateChangeUpdate validates a changed Change.
func ValidateChangeUpdate(change, old *configbutler.Change) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&change.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, validateChangeSpec(&change.Spec, specPath)...)
}

func validateChangeSpec(spec *configbutler.ChangeSpec, path *field.Path) field.ErrorList {
	return validateOneOf(spec.Operation, path.Child("operation"), configbutler.ChangeCreate, configbutler.ChangeUpdate,
		configbutler.ChangeDelete, configbutler.ChangeCompared)
}
