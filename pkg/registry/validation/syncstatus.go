// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"errors"
	"fmt"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// ValidateSyncStatus validates a new record.
func ValidateSyncStatus(record *configbutler.SyncStatus) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&record.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadataPath)
	errs = append(errs, validateSyncStatusSpec(&record.Spec, specPath)...)
	if names := namesOfRecord(&record.Spec); len(errs) == 0 && !slices.Contains(names, record.Name) {
		errs = append(errs, field.NotSupported(metadataPath.Child("name"), record.Name, names))
	}
	firsts := syncstatus.InitialStates(v1alpha1.SyncType(record.Spec.Type))
	if len(firsts) > 0 {
		errs = append(errs, validateOneOf(v1alpha1.SyncState(record.Status.State), statusPath.Child("state"), firsts...)...)
	}
	return append(errs, validateSyncRecord(&record.Status, statusPath)...)
}

// ValidateSyncStatusUpdate validates an update. The subject and the actor are immutable, unless a user requests what is
// waiting, and only valid state transitions are allowed. So an outdated write cannot revert a transition, and no record
// replaces another one.
func ValidateSyncStatusUpdate(record, old *configbutler.SyncStatus) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&record.ObjectMeta, &old.ObjectMeta, metadataPath)
	errs = append(errs, apivalidation.ValidateImmutableField(record.Spec, old.Spec, specPath)...)
	if !claims(&record.Status, &old.Status) {
		errs = append(errs, apivalidation.ValidateImmutableField(record.Status.Actor, old.Status.Actor, statusPath.Child("actor"))...)
	}
	if record.Status.State != old.Status.State {
		errs = append(errs, validateTransition(record, old, statusPath.Child("state"))...)
	}
	if attempts, before := record.Status.Attempts, old.Status.Attempts; 0 <= attempts && attempts < before {
		errs = append(errs, field.Invalid(statusPath.Child("attempts"), attempts, fmt.Sprintf("must not fall: it was %d", before)))
	}
	return append(errs, validateSyncRecord(&record.Status, statusPath)...)
}

// claims reports whether a waiting record becomes the request of a user.
func claims(record, old *configbutler.SyncRecord) bool {
	return old.State == configbutler.SyncStatePending && record.State == old.State && old.Actor == ""
}

// namesOfRecord returns the possible names of the record of a batch.
func namesOfRecord(spec *configbutler.SyncStatusSpec) []string {
	return syncstatus.Names(v1alpha1.SyncStatusSpec{
		Type: v1alpha1.SyncType(spec.Type), Batch: spec.Batch,
		Subject: v1alpha1.SyncSubject{
			Kind: v1alpha1.SubjectKind(spec.Subject.Kind), Name: spec.Subject.Name, UID: spec.Subject.UID,
		},
	})
}

func validateTransition(record, old *configbutler.SyncStatus, path *field.Path) field.ErrorList {
	from, to := v1alpha1.SyncState(old.Status.State), v1alpha1.SyncState(record.Status.State)
	err := syncstatus.CheckTransition(v1alpha1.SyncType(old.Spec.Type), from, to)
	if refused := (*syncstatus.TransitionError)(nil); errors.As(err, &refused) {
		return field.ErrorList{field.Forbidden(path, refused.Error())}
	}
	return nil
}

func validateSyncStatusSpec(spec *configbutler.SyncStatusSpec, path *field.Path) field.ErrorList {
	errs := validateOneOf(spec.Type, path.Child("type"),
		configbutler.SyncTypeCatalog, configbutler.SyncTypeEnvironment, configbutler.SyncTypeDependency)
	subject, batchPath, path := spec.Subject, path.Child("batch"), path.Child("subject")
	kind := configbutler.SubjectEnvironment
	if spec.Type == configbutler.SyncTypeCatalog {
		kind = configbutler.SubjectAppCatalog
	}
	errs = append(errs, validateOneOf(subject.Kind, path.Child("kind"), kind)...)
	errs = append(errs, validateReferenceName(subject.Name, path.Child("name"))...)
	if len(subject.Name) > utilvalidation.LabelValueMaxLength {
		errs = append(errs, field.TooLong(path.Child("name"), subject.Name, utilvalidation.LabelValueMaxLength))
	}
	if subject.UID == "" {
		errs = append(errs, field.Required(path.Child("uid"), "a subject must be told from another of the same name"))
	}
	if spec.Batch == "" {
		errs = append(errs, field.Required(batchPath, "a record must be told from others of its subject"))
	}
	return errs
}

func validateSyncRecord(status *configbutler.SyncRecord, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if status.AutoTriggered != (status.Actor == "") {
		errs = append(errs, field.Invalid(path.Child("autoTriggered"), status.AutoTriggered,
			"must be true exactly when there is no actor, who is the user that asked for it"))
	}
	if status.DetectedAt.IsZero() {
		errs = append(errs, field.Required(path.Child("detectedAt"), "must be the time of the first change, or of the request"))
	}
	if status.Action != "" {
		errs = append(errs, validateOneOf(status.Action, path.Child("action"),
			configbutler.SyncActionCatalog, configbutler.SyncActionCluster, configbutler.SyncActionAll)...)
	}
	errs = append(errs, apivalidation.ValidateNonnegativeField(status.Revision, path.Child("revision"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(status.Attempts), path.Child("attempts"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(status.WorkloadCount), path.Child("workloadCount"))...)
	if n := len(status.WorkloadNames); n > syncstatus.MaxListed {
		errs = append(errs, field.TooMany(path.Child("workloadNames"), n, syncstatus.MaxListed))
	}
	errs = append(errs, validateSummaries(status.ResourceSummaries, path.Child("resourceSummaries"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(status.FromRevision, path.Child("fromRevision"))...)
	errs = append(errs, validateFailures(status.Failures, path.Child("failures"))...)
	if n := len(status.Warnings); n > v1alpha1.MaxFailures {
		errs = append(errs, field.TooMany(path.Child("warnings"), n, v1alpha1.MaxFailures))
	}
	errs = append(errs, validateAuthors(status.ChangedBy, path.Child("changedBy"))...)
	errs = append(errs, validateCommits(status.Commits, path.Child("commits"))...)
	return append(errs, validateProgress(status.Progress, path.Child("progress"))...)
}

func validateSummaries(summaries []configbutler.ResourceSummary, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(summaries); n > syncstatus.MaxListed {
		errs = append(errs, field.TooMany(path, n, syncstatus.MaxListed))
	}
	seen := make(map[configbutler.ResourceSummary]bool, len(summaries))
	for i, summary := range summaries {
		path := path.Index(i)
		if !kindName.MatchString(summary.Type) {
			errs = append(errs, field.Invalid(path.Child("type"), summary.Type, "must be a kind such as ConfigMap"))
		}
		errs = append(errs, validateReferenceName(summary.Name, path.Child("name"))...)
		errs = append(errs, validateOneOf(summary.ChangeType, path.Child("changeType"),
			configbutler.ChangeAdded, configbutler.ChangeChanged, configbutler.ChangeRemoved)...)
		summary.ChangeType = ""
		if seen[summary] {
			errs = append(errs, field.Duplicate(path, fmt.Sprintf("%s %s/%s", summary.Type, summary.Namespace, summary.Name)))
		}
		seen[summary] = true
	}
	return errs
}

func validateFailures(failures []configbutler.ObjectFailure, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(failures); n > v1alpha1.MaxFailures {
		errs = append(errs, field.TooMany(path, n, v1alpha1.MaxFailures))
	}
	seen := make(map[string]bool, len(failures))
	for i, failure := range failures {
		path, object := path.Index(i), fmt.Sprintf("%s %s/%s", failure.Type, failure.Namespace, failure.Name)
		if failure.Reason == "" || failure.Message == "" {
			errs = append(errs, field.Required(path, "must have a reason and a message"))
		}
		if len(failure.Message) > v1alpha1.MaxFailureBytes {
			errs = append(errs, field.TooLong(path.Child("message"), "", v1alpha1.MaxFailureBytes))
		}
		if seen[object] {
			errs = append(errs, field.Duplicate(path, object))
		}
		seen[object] = true
	}
	return errs
}

func validateAuthors(authors []configbutler.SourceAuthor, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, author := range authors {
		path := path.Index(i)
		errs = append(errs, validateOneOf(author.Signal, path.Child("signal"), configbutler.SignalAudit,
			configbutler.SignalAdmission, configbutler.SignalManagedFields, configbutler.SignalUnknown)...)
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(author.Workloads), path.Child("workloads"))...)
	}
	return errs
}

func validateCommits(commits []configbutler.MirroredCommit, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(commits); n > syncstatus.MaxCommits {
		errs = append(errs, field.TooMany(path, n, syncstatus.MaxCommits))
	}
	for i, commit := range commits {
		path := path.Index(i)
		if commit.SHA == "" {
			errs = append(errs, field.Required(path.Child("sha"), "must be the hash of the commit"))
		}
		errs = append(errs, validateNamespacedObjectReference(commit.DestinationRef, path.Child("destinationRef"))...)
	}
	return errs
}

func validateProgress(progress *configbutler.Progress, path *field.Path) field.ErrorList {
	if progress == nil || progress.Done >= 0 && progress.Done <= progress.Total {
		return nil
	}
	return field.ErrorList{
		field.Invalid(path.Child("done"), progress.Done, fmt.Sprintf("must be at least 0 and at most %d, the total", progress.Total)),
	}
}
