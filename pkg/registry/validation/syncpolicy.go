// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
)

const (
	day              = 24 * time.Hour
	year             = 365 * day
	maxSyncsAMinute  = 10000
	maxAttempts      = 100
	maxRetentionDays = 3650
	maxKept          = 10000
	maxRecords       = 100000
	maxDismissals    = 1000
	maxTrackingMarks = 100
	maxReminders     = 10

	maxChangeAge        = 10 * year
	minChanges          = 1000
	maxChanges          = 10_000_000
	maxChangesPerObject = 1_000_000
)

// ValidateSyncPolicy validates a new SyncPolicy.
func ValidateSyncPolicy(policy *configbutler.SyncPolicy) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&policy.ObjectMeta, false, policyName, metadataPath)
	return append(errs, validateSyncPolicySpec(&policy.Spec, specPath)...)
}

// ValidateSyncPolicyUpdate validates a changed SyncPolicy. Every field of the spec may change.
func ValidateSyncPolicyUpdate(policy, old *configbutler.SyncPolicy) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&policy.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, validateSyncPolicySpec(&policy.Spec, specPath)...)
}

// ValidateSyncPolicyStatusUpdate validates a changed status.
func ValidateSyncPolicyStatusUpdate(policy, old *configbutler.SyncPolicy) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&policy.ObjectMeta, &old.ObjectMeta, metadataPath)
	status := &policy.Status
	errs = append(errs, validateObserved(status.ObservedGeneration, status.Conditions)...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(status.Records, statusPath.Child("records"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(status.RecordsExpired, statusPath.Child("recordsExpired"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(status.RecordsArchived, statusPath.Child("recordsArchived"))...)
	return append(errs, apivalidation.ValidateNonnegativeField(status.SyncsWaiting, statusPath.Child("syncsWaiting"))...)
}

// policyName allows only the name of the singleton.
func policyName(name string, _ bool) []string {
	if name == configbutler.SyncPolicyName {
		return nil
	}
	return []string{"must be " + configbutler.SyncPolicyName + ": there is one SyncPolicy"}
}

func validateSyncPolicySpec(spec *configbutler.SyncPolicySpec, path *field.Path) field.ErrorList {
	errs := validateDuration(spec.BatchWindow, time.Second, time.Hour, path.Child("batchWindow"))
	errs = append(errs, validateRange(spec.MaxSyncsPerMinute, 1, maxSyncsAMinute, path.Child("maxSyncsPerMinute"))...)
	errs = append(errs, validateRetryPolicy(&spec.Retry, path.Child("retry"))...)
	errs = append(errs, validateRetention(&spec.Retention, path.Child("retention"))...)
	errs = append(errs, validateChangeRetention(&spec.Changes, path.Child("changes"))...)
	errs = append(errs, validateReminders(&spec.Reminders, path.Child("reminders"))...)
	errs = append(errs, validateRange(spec.MaxDismissals, 1, maxDismissals, path.Child("maxDismissals"))...)
	return append(errs, validateTrackingMarks(spec.TrackingMarks, path.Child("trackingMarks"))...)
}

func validateTrackingMarks(marks []string, path *field.Path) field.ErrorList {
	if len(marks) > maxTrackingMarks {
		return field.ErrorList{field.TooMany(path, len(marks), maxTrackingMarks)}
	}
	errs := validateUnique(marks, path)
	for i, mark := range marks {
		if _, err := objectcopy.ParseMarks(mark); err != nil {
			errs = append(errs, field.Invalid(path.Index(i), mark, err.Error()))
		}
	}
	return errs
}

func validateRetryPolicy(retry *configbutler.RetryPolicy, path *field.Path) field.ErrorList {
	errs := validateRange(retry.MaxAttempts, 1, maxAttempts, path.Child("maxAttempts"))
	errs = append(errs, validateDuration(retry.Backoff, time.Second, time.Hour, path.Child("backoff"))...)
	if len(errs) > 0 || retry.Backoff == nil {
		return errs
	}
	return validateDuration(retry.MaxBackoff, retry.Backoff.Duration, day, path.Child("maxBackoff"))
}

func validateRetention(retention *configbutler.Retention, path *field.Path) field.ErrorList {
	errs := validateRange(retention.Days, 1, maxRetentionDays, path.Child("days"))
	errs = append(errs, validateRange(retention.KeepPerSubject, 0, maxKept, path.Child("keepPerSubject"))...)
	least := int32(1)
	if kept := retention.KeepPerSubject; kept != nil && *kept > least && *kept <= maxKept {
		least = *kept
	}
	errs = append(errs, validateRange(retention.MaxPerSubject, least, maxRecords, path.Child("maxPerSubject"))...)
	return append(errs, validateArchive(retention.Archive, path.Child("archive"))...)
}

func validateChangeRetention(retention *configbutler.ChangeRetention, path *field.Path) field.ErrorList {
	errs := validateDuration(retention.TTL, time.Hour, maxChangeAge, path.Child("ttl"))
	errs = append(errs, validateRange(retention.MaxTotal, minChanges, maxChanges, path.Child("maxTotal"))...)
	return append(errs, validateRange(retention.MaxPerObject, 1, maxChangesPerObject, path.Child("maxPerObject"))...)
}

func validateReminders(reminders *configbutler.Reminders, path *field.Path) field.ErrorList {
	after, every := path.Child("after"), path.Child("every")
	if n := len(reminders.After); n > maxReminders {
		return field.ErrorList{field.TooMany(after, n, maxReminders)}
	}
	var errs field.ErrorList
	for i := range reminders.After {
		at := &reminders.After[i]
		errs = append(errs, validateDuration(at, time.Minute, year, after.Index(i))...)
		if i > 0 && at.Duration <= reminders.After[i-1].Duration {
			errs = append(errs, field.Invalid(after.Index(i), at.Duration.String(),
				fmt.Sprintf("must be more than the time before it, %s: the times are in ascending order", short(reminders.After[i-1].Duration))))
		}
	}
	if interval := reminders.Every; interval != nil && interval.Duration != 0 && len(validateDuration(interval, time.Hour, year, every)) > 0 {
		errs = append(errs, field.Invalid(every, interval.Duration.String(), "must be 0s for no further reminders, or at least 1h and at most 8760h"))
	}
	return errs
}

func validateArchive(archive *configbutler.Archive, path *field.Path) field.ErrorList {
	if archive == nil {
		return nil
	}
	errs := validateOneOf(archive.Type, path.Child("type"), configbutler.ArchiveFile, configbutler.ArchiveGitDestination)
	path = path.Child("destinationRef")
	switch toGit := archive.Type == configbutler.ArchiveGitDestination; {
	case toGit && archive.DestinationRef == nil:
		errs = append(errs, field.Required(path, "type GitDestination needs it"))
	case toGit:
		errs = append(errs, validateNamespacedObjectReference(*archive.DestinationRef, path)...)
	case archive.DestinationRef != nil:
		errs = append(errs, field.Forbidden(path, "must be absent unless type is GitDestination"))
	}
	return errs
}

// validateDuration validates the range of an optional duration.
func validateDuration(value *metav1.Duration, least, most time.Duration, path *field.Path) field.ErrorList {
	if value == nil || value.Duration >= least && value.Duration <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value.Duration.String(),
		fmt.Sprintf("must be at least %s and at most %s", short(least), short(most)))}
}

// short formats a duration without trailing zero units, as in 1h.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// validateRange validates the range of an optional number.
func validateRange(value *int32, least, most int32, path *field.Path) field.ErrorList {
	if value == nil || *value >= least && *value <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, fmt.Sprintf("must be at least %d and at most %d", least, most))}
}
