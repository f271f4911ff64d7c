// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// ValidateCatalogSync validates a request to read the source of the named catalog again.
func ValidateCatalogSync(request *configbutler.CatalogSync, name string) field.ErrorList {
	return validateNameInPath(request.Name, name)
}

// ValidateRollback validates a request to roll the named object back to a revision in its history.
func ValidateRollback(request *configbutler.Rollback, name string, history []configbutler.CatalogRevision) field.ErrorList {
	errs := validateNameInPath(request.Name, name)
	path := specPath.Child("revision")
	if request.Spec.Revision == 0 {
		return append(errs, field.Required(path, "name the revision to go to"))
	}
	return append(errs, validateInHistory(request.Spec.Revision, history, path)...)
}

// ValidateDismissal validates a request to dismiss the prompts of the named object.
func ValidateDismissal(request *configbutler.Dismissal, name string) field.ErrorList {
	return validateNameInPath(request.Name, name)
}

// ValidateRetry validates a request to retry the named record.
func ValidateRetry(request *configbutler.Retry, name string) field.ErrorList {
	return validateNameInPath(request.Name, name)
}

// validateNameInPath checks that a request has no other name than the one in its path.
func validateNameInPath(given, name string) field.ErrorList {
	if given == "" || given == name {
		return nil
	}
	return field.ErrorList{
		field.Invalid(metadataPath.Child("name"), given, fmt.Sprintf("must be %s, the object in the path, or absent", name)),
	}
}
