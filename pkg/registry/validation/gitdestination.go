// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// maxRecipients limits the work of encrypting a Secret, which grows with each recipient.
const maxRecipients = 100

// ValidateGitDestination validates a new GitDestination.
func ValidateGitDestination(destination *configbutler.GitDestination) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&destination.ObjectMeta, true, destinationName, metadataPath)
	errs = append(errs, validateBaseFolder(destination.Spec.BaseFolder, specPath.Child("baseFolder"))...)
	errs = append(errs, validateDelivery(destination, specPath.Child("delivery"))...)
	return append(errs, validateGitDestinationSpec(&destination.Spec, specPath)...)
}

// ValidateGitDestinationUpdate validates an update. Every field of the spec can change. An unchanged folder is not
// validated again, so that an object with a name that is no longer valid can still be changed and deleted.
func ValidateGitDestinationUpdate(destination, old *configbutler.GitDestination) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&destination.ObjectMeta, &old.ObjectMeta, metadataPath)
	if destination.Spec.BaseFolder != old.Spec.BaseFolder {
		errs = append(errs, validateBaseFolder(destination.Spec.BaseFolder, specPath.Child("baseFolder"))...)
	}
	errs = append(errs, validateDelivery(destination, specPath.Child("delivery"))...)
	return append(errs, validateGitDestinationSpec(&destination.Spec, specPath)...)
}

// ValidateGitDestinationStateUpdate validates a changed status of a GitDestination; its record is a GitDestinationStatus.
func ValidateGitDestinationStateUpdate(destination, old *configbutler.GitDestination) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&destination.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, validateObserved(destination.Status.ObservedGeneration, destination.Status.Conditions)...)
	return append(errs, validatePendingSyncs(destination.Status.PendingSyncs, statusPath.Child("pendingSyncs"))...)
}

// ValidateGitDestinationStateRequest also validates a status update from a client. Requests are recorded by the server
// and can only be removed.
func ValidateGitDestinationStateRequest(destination, old *configbutler.GitDestination) field.ErrorList {
	return validateOnlyTakenOut(destination.Status.PendingSyncs, old.Status.PendingSyncs, statusPath.Child("pendingSyncs"))
}

// destinationName requires names that are valid label values, because records carry the name of their subject in a
// label.
func destinationName(name string, prefix bool) []string {
	errs := apivalidation.NameIsDNSSubdomain(name, prefix)
	if len(name) > utilvalidation.LabelValueMaxLength {
		errs = append(errs, fmt.Sprintf("must have at most %d characters", utilvalidation.LabelValueMaxLength))
	}
	return errs
}

// validateGitDestinationSpec validates a spec except for the folder and the delivery.
func validateGitDestinationSpec(spec *configbutler.GitDestinationSpec, path *field.Path) field.ErrorList {
	errs := validateObjectReference(spec.RepoRef, path.Child("repoRef"))
	errs = append(errs, validateBranch(spec.Branch, path.Child("branch"))...)
	errs = append(errs, validateAccessPolicy(spec.AccessPolicy, path.Child("accessPolicy"))...)
	errs = append(errs, validateOneOf(spec.Granularity, path.Child("granularity"),
		configbutler.GranularityPerAuthor, configbutler.GranularityPerChange, configbutler.GranularityBatch)...)
	errs = append(errs, validateOneOf(spec.Secrets, path.Child("secrets"),
		configbutler.SecretsEncrypt, configbutler.SecretsAsIs, configbutler.SecretsOmit)...)
	errs = append(errs, validateEncryption(spec, path.Child("encryption"))...)
	errs = append(errs, validateOneOf(spec.Prune, path.Child("prune"), configbutler.PruneAlways, configbutler.PruneNever)...)
	return append(errs, validateIgnore(spec.Ignore, path.Child("ignore"))...)
}

func validateEncryption(spec *configbutler.GitDestinationSpec, path *field.Path) field.ErrorList {
	if spec.Encryption == nil {
		return nil
	}
	if spec.Secrets == configbutler.SecretsAsIs {
		return field.ErrorList{field.Forbidden(path, "must be absent when secrets is AsIs, which writes Secrets plainly")}
	}
	recipients, path := spec.Encryption.AgeRecipients, path.Child("ageRecipients")
	if n := len(recipients); n > maxRecipients {
		return field.ErrorList{field.TooMany(path, n, maxRecipients)}
	}
	errs := validateUnique(recipients, path)
	for i, recipient := range recipients {
		errs = append(errs, validateAgeRecipient(recipient, path.Index(i))...)
	}
	return errs
}
