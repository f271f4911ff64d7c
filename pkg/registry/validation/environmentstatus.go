// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// ValidateEnvironmentStatusUpdate validates a status update. Revisions can decrease: by a rollback, or because the
// catalog was recreated.
func ValidateEnvironmentStatusUpdate(environment, old *configbutler.Environment) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&environment.ObjectMeta, &old.ObjectMeta, metadataPath)
	status, path := &environment.Status, statusPath
	errs = append(errs, validateObserved(status.ObservedGeneration, status.Conditions)...)
	errs = append(errs, validateEnvironmentCounts(status, path)...)
	errs = append(errs, validateWorkloadChanges(status.ChangedWorkloads, path.Child("changedWorkloads"))...)
	errs = append(errs, validateDependencyCounts(status.ChangedDependencies, path.Child("changedDependencies"))...)
	errs = append(errs, validateActiveSyncs(status.ActiveSyncs, path.Child("activeSyncs"))...)
	errs = append(errs, validateConflicts(status.Conflicts, path.Child("conflicts"))...)
	errs = append(errs, validateNotCopied(status.NotCopied, path.Child("notCopied"))...)
	if by := status.AutomatedBy; by != nil && by.Username == "" {
		errs = append(errs, field.Required(path.Child("automatedBy", "username"), "must be the user who turned automatic syncs on"))
	}
	errs = append(errs, validateAppliedHistory(status.History, path.Child("history"))...)
	errs = append(errs, validateEnvironmentEdits(status.PendingEdits, path.Child("pendingEdits"))...)
	return append(errs, validatePendingRequests(status.PendingRequests, path.Child("pendingRequests"))...)
}

// ValidateEnvironmentStatusRequest also validates a status update from a client. Edits, requests and the user in
// automatedBy are recorded by the server for the authenticated user. Edits and requests can only be removed.
func ValidateEnvironmentStatusRequest(environment, old *configbutler.Environment) field.ErrorList {
	status, before := &environment.Status, &old.Status
	errs := validateOnlyTakenOut(status.PendingEdits, before.PendingEdits, statusPath.Child("pendingEdits"))
	errs = append(errs, validateOnlyTakenOut(status.PendingRequests, before.PendingRequests, statusPath.Child("pendingRequests"))...)
	if !equality.Semantic.DeepEqual(status.AutomatedBy, before.AutomatedBy) {
		errs = append(errs, field.Forbidden(statusPath.Child("automatedBy"),
			"only the server writes it, when spec.autoSync is turned on or off: it must stay as it is"))
	}
	return errs
}

func validateEnvironmentCounts(status *configbutler.EnvironmentStatus, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateNonnegativeField(status.LatestRevision, path.Child("latestRevision"))
	errs = append(errs, apivalidation.ValidateNonnegativeField(status.AppliedRevision, path.Child("appliedRevision"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(status.Dismissals), path.Child("dismissals"))...)
	if listed := int32(len(status.ChangedWorkloads)); status.ChangedWorkloadCount < listed {
		errs = append(errs, field.Invalid(path.Child("changedWorkloadCount"), status.ChangedWorkloadCount,
			fmt.Sprintf("must be at least %d, the number of changedWorkloads", listed)))
	}
	if ready := status.WorkloadsReady; ready != nil && (ready.Ready < 0 || ready.Ready > ready.Total) {
		errs = append(errs, field.Invalid(path.Child("workloadsReady", "ready"), ready.Ready,
			fmt.Sprintf("must be at least 0 and at most %d, the total", ready.Total)))
	}
	return errs
}

func validateWorkloadChanges(changes []configbutler.WorkloadChange, path *field.Path) field.ErrorList {
	workloads := make([]configbutler.WorkloadReference, len(changes))
	var errs field.ErrorList
	for i, change := range changes {
		workloads[i] = configbutler.WorkloadReference{Kind: change.Kind, Name: change.Name}
		errs = append(errs, validateOneOf(change.ChangeType, path.Index(i).Child("changeType"),
			configbutler.ChangeAdded, configbutler.ChangeChanged, configbutler.ChangeRemoved)...)
	}
	return append(errs, validateWorkloadReferences(workloads, path)...)
}

var countedTypes = []configbutler.CountedType{
	configbutler.CountedConfigMap, configbutler.CountedSecret, configbutler.CountedService, configbutler.CountedServiceAccount,
	configbutler.CountedAutoscaler, configbutler.CountedDisruptionBudget, configbutler.CountedIngress, configbutler.CountedNetworkPolicy,
	configbutler.CountedGateway, configbutler.CountedGRPCRoute, configbutler.CountedHTTPRoute, configbutler.CountedReferenceGrant,
	configbutler.CountedCustomResource,
}

func validateDependencyCounts(counts []configbutler.DependencyCount, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[configbutler.CountedType]bool, len(counts))
	for i, count := range counts {
		path := path.Index(i)
		errs = append(errs, validateOneOf(count.Type, path.Child("type"), countedTypes...)...)
		if count.Count < 1 {
			errs = append(errs, field.Invalid(path.Child("count"), count.Count, "must be at least 1"))
		}
		if seen[count.Type] {
			errs = append(errs, field.Duplicate(path.Child("type"), count.Type))
		}
		seen[count.Type] = true
	}
	return errs
}

func validateActiveSyncs(records []string, path *field.Path) field.ErrorList {
	errs := validateUnique(records, path)
	if n := len(records); n > v1alpha1.MaxActiveSyncs {
		errs = append(errs, field.TooMany(path, n, v1alpha1.MaxActiveSyncs))
	}
	return errs
}

func validateConflicts(conflicts []configbutler.WorkloadConflict, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(conflicts); n > v1alpha1.MaxConflicts {
		errs = append(errs, field.TooMany(path, n, v1alpha1.MaxConflicts))
	}
	workloads := make([]configbutler.WorkloadReference, len(conflicts))
	for i, conflict := range conflicts {
		workloads[i] = configbutler.WorkloadReference{Kind: conflict.Kind, Name: conflict.Name}
		errs = append(errs, validateConflictFields(conflict.Fields, path.Index(i).Child("fields"))...)
	}
	return append(errs, validateWorkloadReferences(workloads, path)...)
}

func validateConflictFields(fields []configbutler.FieldConflict, path *field.Path) field.ErrorList {
	switch n := len(fields); {
	case n == 0:
		return field.ErrorList{field.Required(path, "a conflict is about one field at least")}
	case n > v1alpha1.MaxConflicts:
		return field.ErrorList{field.TooMany(path, n, v1alpha1.MaxConflicts)}
	}
	names := make([]string, len(fields))
	for i, conflict := range fields {
		names[i] = conflict.Field
	}
	return validateUnique(names, path)
}

func validateNotCopied(objects []configbutler.NotCopiedObject, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(objects); n > v1alpha1.MaxNotCopied {
		errs = append(errs, field.TooMany(path, n, v1alpha1.MaxNotCopied))
	}
	names := make([]string, len(objects))
	for i, object := range objects {
		path := path.Index(i)
		names[i] = object.Kind + " " + object.Name
		errs = append(errs, validateOneOf(object.Reason, path.Child("reason"), configbutler.NotCopiedGrantsRights,
			configbutler.NotCopiedHoldsData, configbutler.NotCopiedUnreadable)...)
		if n := len(object.ServiceAccounts); n > v1alpha1.MaxNotCopied {
			errs = append(errs, field.TooMany(path.Child("serviceAccounts"), n, v1alpha1.MaxNotCopied))
		}
		errs = append(errs, validateUnique(object.ServiceAccounts, path.Child("serviceAccounts"))...)
	}
	return append(errs, validateUnique(names, path)...)
}

// validateAppliedHistory validates revisions in the order in which they were applied, which can differ from that of
// their numbers.
func validateAppliedHistory(history []configbutler.CatalogRevision, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(history); n > maxHistoryLimit {
		errs = append(errs, field.TooMany(path, n, maxHistoryLimit))
	}
	seen := make(map[int64]bool, len(history))
	for i, there := range history {
		path := path.Index(i).Child("revision")
		if there.Revision < 1 {
			errs = append(errs, field.Invalid(path, there.Revision, "must be at least 1"))
		}
		if seen[there.Revision] {
			errs = append(errs, field.Duplicate(path, there.Revision))
		}
		seen[there.Revision] = true
	}
	return errs
}

func validateEnvironmentEdits(edits []configbutler.EnvironmentEdit, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(edits); n > v1alpha1.MaxPendingEdits {
		errs = append(errs, field.TooMany(path, n, v1alpha1.MaxPendingEdits))
	}
	seen := make(map[int64]bool, len(edits))
	for i, edit := range edits {
		path := path.Index(i)
		errs = append(errs, validateActor(edit.Actor, path.Child("actor"))...)
		errs = append(errs, validateUnique(edit.Fields, path.Child("fields"))...)
		if seen[edit.Generation] {
			errs = append(errs, field.Duplicate(path.Child("generation"), edit.Generation))
		}
		seen[edit.Generation] = true
	}
	return errs
}

func validatePendingRequests(pending []configbutler.PendingEnvironmentRequest, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(pending); n > v1alpha1.MaxPendingSyncs {
		errs = append(errs, field.TooMany(path, n, v1alpha1.MaxPendingSyncs))
	}
	seen := make(map[string]bool, len(pending))
	for i := range pending {
		path := path.Index(i)
		errs = append(errs, validateSyncID(pending[i].ID, seen, path.Child("id"))...)
		errs = append(errs, validateActor(pending[i].Actor, path.Child("actor"))...)
		errs = append(errs, validatePendingRequest(&pending[i], path)...)
	}
	return errs
}

// validatePendingRequest checks that a request has the fields of its type and no others.
func validatePendingRequest(request *configbutler.PendingEnvironmentRequest, path *field.Path) field.ErrorList {
	errs := validateOneOf(request.Type, path.Child("type"), configbutler.EnvironmentRequestSync,
		configbutler.EnvironmentRequestResolve, configbutler.EnvironmentRequestRediscover)
	sync, resolve := path.Child("sync"), path.Child("resolve")
	errs = append(errs, validatePresence(request.Sync != nil, request.Type == configbutler.EnvironmentRequestSync, "Sync", sync)...)
	errs = append(errs, validatePresence(request.Resolve != nil, request.Type == configbutler.EnvironmentRequestResolve,
		"Resolve", resolve)...)
	if request.Sync != nil {
		errs = append(errs, validateSyncRequestSpec(request.Sync, sync)...)
	}
	if request.Resolve != nil {
		errs = append(errs, validateChoiceLists(request.Resolve, resolve)...)
	}
	return errs
}

// validatePresence checks that a field is set for one type only.
func validatePresence(there, wanted bool, of string, path *field.Path) field.ErrorList {
	switch {
	case wanted && !there:
		return field.ErrorList{field.Required(path, fmt.Sprintf("type %s needs it", of))}
	case there && !wanted:
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("must be absent unless type is %s", of))}
	}
	return nil
}

func validateDependencyType(of configbutler.DependencyType, path *field.Path) field.ErrorList {
	return validateOneOf(of, path, configbutler.DependencyConfigMap, configbutler.DependencySecret,
		configbutler.DependencyService, configbutler.DependencyServiceAccount)
}
