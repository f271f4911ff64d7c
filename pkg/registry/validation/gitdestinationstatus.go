// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// ValidateGitDestinationStatus validates a new record.
func ValidateGitDestinationStatus(record *configbutler.GitDestinationStatus) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&record.ObjectMeta, true, destinationName, metadataPath)
	return append(errs, validateGitDestinationRecord(&record.Status, statusPath)...)
}

// ValidateGitDestinationStatusUpdate validates a changed record.
func ValidateGitDestinationStatusUpdate(record, old *configbutler.GitDestinationStatus) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&record.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, validateGitDestinationRecord(&record.Status, statusPath)...)
}

func validateGitDestinationRecord(record *configbutler.GitDestinationRecord, path *field.Path) field.ErrorList {
	attribution := path.Child("attribution")
	counts := []struct {
		path  *field.Path
		value int64
	}{
		{path.Child("queueDepth"), record.QueueDepth},
		{path.Child("pendingChanges"), record.PendingChanges},
		{path.Child("objects"), record.Objects},
		{path.Child("files"), record.Files},
		{path.Child("orphansRemoved"), record.OrphansRemoved},
		{path.Child("orphansHeld"), record.OrphansHeld},
		{path.Child("pushRetries"), record.PushRetries},
		{attribution.Child("audit"), record.Attribution.Audit},
		{attribution.Child("admission"), record.Attribution.Admission},
		{attribution.Child("managedFields"), record.Attribution.ManagedFields},
		{attribution.Child("unknown"), record.Attribution.Unknown},
	}
	var errs field.ErrorList
	for _, count := range counts {
		errs = append(errs, apivalidation.ValidateNonnegativeField(count.value, count.path)...)
	}
	errs = append(errs, validateSyncs(record.Syncs, path.Child("syncs"))...)
	return append(errs, validateWatches(record.Watches, path.Child("watches"))...)
}

func validateWatches(watches []configbutler.ResourceTypeWatch, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[configbutler.ResourceType]bool, len(watches))
	for i, watch := range watches {
		path := path.Index(i)
		errs = append(errs, validateResourceType(watch.ResourceType, path)...)
		errs = append(errs, validateOneOf(watch.State, path.Child("state"), configbutler.WatchStateListing,
			configbutler.WatchStateWatching, configbutler.WatchStateFailing)...)
		errs = append(errs, apivalidation.ValidateNonnegativeField(watch.Objects, path.Child("objects"))...)
		if seen[watch.ResourceType] {
			errs = append(errs, field.Duplicate(path, watch.ResourceType))
		}
		seen[watch.ResourceType] = true
	}
	return errs
}
