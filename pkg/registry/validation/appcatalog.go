// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const maxHistoryLimit = 100

// ValidateAppCatalog validates a new AppCatalog.
func ValidateAppCatalog(catalog *configbutler.AppCatalog) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&catalog.ObjectMeta, true, catalogName, metadataPath)
	if catalog.Spec.PinnedRevision != nil {
		errs = append(errs, field.Forbidden(specPath.Child("pinnedRevision"), "must be absent from a new catalog, which has no revision yet"))
	}
	return append(errs, validateAppCatalogSpec(catalog)...)
}

// ValidateAppCatalogUpdate validates an update. The source is immutable: the history, and what readers were allowed to
// see, belong to one namespace, and another one would look like the loss of every workload.
func ValidateAppCatalogUpdate(catalog, old *configbutler.AppCatalog) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&catalog.ObjectMeta, &old.ObjectMeta, metadataPath)
	if catalog.Spec.SourceNamespace != old.Spec.SourceNamespace {
		errs = append(errs, field.Forbidden(specPath.Child("sourceNamespace"),
			fmt.Sprintf("must stay %s, because the catalog's revisions are of that namespace; make another catalog", old.Spec.SourceNamespace)))
	}
	errs = append(errs, validatePin(catalog.Spec.PinnedRevision, old.Spec.PinnedRevision, old.Status.History,
		specPath.Child("pinnedRevision"))...)
	return append(errs, validateAppCatalogSpec(catalog)...)
}

// ValidateAppCatalogStatusUpdate validates a status update.
func ValidateAppCatalogStatusUpdate(catalog, old *configbutler.AppCatalog) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&catalog.ObjectMeta, &old.ObjectMeta, metadataPath)
	status := &catalog.Status
	errs = append(errs, validateObserved(status.ObservedGeneration, status.Conditions)...)
	if status.Revision < old.Status.Revision {
		errs = append(errs, field.Invalid(statusPath.Child("revision"), status.Revision,
			fmt.Sprintf("must not fall: it was %d", old.Status.Revision)))
	}
	errs = append(errs, validateEntries(status.Workloads, statusPath.Child("workloads"))...)
	errs = append(errs, validateHistory(status.History, status.Revision, statusPath.Child("history"))...)
	if by := status.EditedBy; by != nil && by.Username == "" {
		errs = append(errs, field.Required(statusPath.Child("editedBy", "username"), "must be the user who had the catalog show more"))
	}
	errs = append(errs, validatePendingEdits(status.PendingEdits, statusPath.Child("pendingEdits"))...)
	return append(errs, validatePendingCatalogSyncs(status.PendingSyncs, statusPath.Child("pendingSyncs"))...)
}

// ValidateAppCatalogStatusRequest also validates a status update from a client. Edits, requests and the user in
// editedBy are recorded by the server for the authenticated user. Edits and requests can only be removed.
func ValidateAppCatalogStatusRequest(catalog, old *configbutler.AppCatalog) field.ErrorList {
	errs := validateOnlyTakenOut(catalog.Status.PendingEdits, old.Status.PendingEdits, statusPath.Child("pendingEdits"))
	errs = append(errs, validateEditedBy(catalog.Status.EditedBy, old.Status.EditedBy)...)
	return append(errs, validateOnlyTakenOut(catalog.Status.PendingSyncs, old.Status.PendingSyncs, statusPath.Child("pendingSyncs"))...)
}

// catalogName requires a DNS label, because records carry the catalog's name in a label and in their own name before a
// dot.
func catalogName(name string, prefix bool) []string {
	return apivalidation.NameIsDNSLabel(name, prefix)
}

func validateAppCatalogSpec(catalog *configbutler.AppCatalog) field.ErrorList {
	spec, path := &catalog.Spec, specPath
	errs := validateSourceNamespace(spec.SourceNamespace, path.Child("sourceNamespace"))
	errs = append(errs, validateWorkloads(catalog.Name, spec.Workloads, path.Child("workloads"))...)
	if len(spec.Workloads) == 0 && spec.WorkloadSelector == nil {
		errs = append(errs, field.Required(path.Child("workloads"),
			"name workloads, or give a workloadSelector; {} selects everything that runs in the source"))
	}
	errs = append(errs, validateSelector(spec.WorkloadSelector, path.Child("workloadSelector"))...)
	errs = append(errs, validatePatches(spec.Patches, path.Child("patches"))...)
	errs = append(errs, validateIgnore(spec.Ignore, path.Child("ignore"))...)
	errs = append(errs, validateRange(spec.HistoryLimit, 1, maxHistoryLimit, path.Child("historyLimit"))...)
	errs = append(errs, validateOneOf(spec.Secrets, path.Child("secrets"),
		configbutler.CatalogSecretsRequester, configbutler.CatalogSecretsShared)...)
	return append(errs, validateCatalogAccessPolicy(spec.AccessPolicy, path.Child("accessPolicy"))...)
}

func validateSourceNamespace(namespace string, path *field.Path) field.ErrorList {
	if namespace == "" {
		return field.ErrorList{field.Required(path, "name the namespace whose workloads are followed, such as production")}
	}
	return invalidUnless(apivalidation.ValidateNamespaceName(namespace, false), namespace, path)
}

// validateWorkloads validates the workloads of a catalog. The name of each record consists of both names.
func validateWorkloads(catalog string, workloads []configbutler.WorkloadReference, path *field.Path) field.ErrorList {
	errs := validateWorkloadReferences(workloads, path)
	for i, workload := range workloads {
		errs = append(errs, validateRecordName(catalog, workload, path.Index(i).Child("name"))...)
	}
	return errs
}

func validateWorkloadReferences(workloads []configbutler.WorkloadReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(workloads) > v1alpha1.MaxWorkloads {
		errs = append(errs, field.TooMany(path, len(workloads), v1alpha1.MaxWorkloads))
	}
	seen := make(map[configbutler.WorkloadReference]bool, len(workloads))
	for i, workload := range workloads {
		path := path.Index(i)
		errs = append(errs, validateWorkload(workload.Kind, workload.Name, path)...)
		if seen[workload] {
			errs = append(errs, field.Duplicate(path, workload))
		}
		seen[workload] = true
	}
	return errs
}

// validateRecordName checks that the names of a catalog and a workload fit into that of the record.
func validateRecordName(catalog string, workload configbutler.WorkloadReference, path *field.Path) field.ErrorList {
	const most = utilvalidation.DNS1123SubdomainMaxLength
	record := v1alpha1.CatalogWorkloadName(catalog, v1alpha1.WorkloadKind(workload.Kind), workload.Name)
	if len(record) <= most || len(workload.Name) > most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, workload.Name, fmt.Sprintf(
		"makes the name of the workload's record, CATALOG.KIND.NAME, longer than %d characters, by %d; a shorter name of the catalog makes room",
		most, len(record)-most))}
}

func validateWorkload(kind configbutler.WorkloadKind, name string, path *field.Path) field.ErrorList {
	errs := validateOneOf(kind, path.Child("kind"), configbutler.WorkloadDeployment, configbutler.WorkloadStatefulSet,
		configbutler.WorkloadDaemonSet, configbutler.WorkloadReplicaSet, configbutler.WorkloadJob, configbutler.WorkloadCronJob)
	return append(errs, validateReferenceName(name, path.Child("name"))...)
}

// validatePin checks that a revision is in the history. A pin that does not change needs no history.
func validatePin(pinned, before *int64, history []configbutler.CatalogRevision, path *field.Path) field.ErrorList {
	if pinned == nil || before != nil && *before == *pinned {
		return nil
	}
	return validateInHistory(*pinned, history, path)
}

// validateInHistory checks that a revision is in the history.
func validateInHistory(revision int64, history []configbutler.CatalogRevision, path *field.Path) field.ErrorList {
	known := make([]string, len(history))
	for i, there := range history {
		if there.Revision == revision {
			return nil
		}
		known[i] = fmt.Sprint(there.Revision)
	}
	if len(known) == 0 {
		return field.ErrorList{field.Invalid(path, revision, "there is no revision to go to yet: status.history is empty")}
	}
	return field.ErrorList{field.NotSupported(path, fmt.Sprint(revision), known)}
}

func validateEntries(entries []configbutler.CatalogEntry, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[configbutler.WorkloadReference]bool, len(entries))
	for i, entry := range entries {
		path := path.Index(i)
		errs = append(errs, validateWorkload(entry.Kind, entry.Name, path)...)
		errs = append(errs, apivalidation.ValidateNonnegativeField(entry.Revision, path.Child("revision"))...)
		key := configbutler.WorkloadReference{Kind: entry.Kind, Name: entry.Name}
		if seen[key] {
			errs = append(errs, field.Duplicate(path, key))
		}
		seen[key] = true
	}
	return errs
}

// validateHistory checks that revisions are descending and thus unique.
func validateHistory(history []configbutler.CatalogRevision, newest int64, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, there := range history {
		path, before := path.Index(i).Child("revision"), newest+1
		if i > 0 {
			before = history[i-1].Revision
		}
		if there.Revision < 1 || there.Revision >= before {
			errs = append(errs, field.Invalid(path, there.Revision,
				fmt.Sprintf("must be at least 1 and less than %d: the newest comes first", before)))
		}
	}
	return errs
}

func validatePendingEdits(edits []configbutler.CatalogEdit, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(edits) > v1alpha1.MaxPendingEdits {
		errs = append(errs, field.TooMany(path, len(edits), v1alpha1.MaxPendingEdits))
	}
	for i, edit := range edits {
		if slices.ContainsFunc(edits[:i], func(e configbutler.CatalogEdit) bool { return e.Generation == edit.Generation }) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("generation"), edit.Generation))
		}
		errs = append(errs, validateActor(edit.Actor, path.Index(i).Child("actor"))...)
	}
	return errs
}

func validatePendingCatalogSyncs(pending []configbutler.PendingCatalogSync, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(pending) > v1alpha1.MaxPendingSyncs {
		errs = append(errs, field.TooMany(path, len(pending), v1alpha1.MaxPendingSyncs))
	}
	seen := make(map[string]bool, len(pending))
	for i, request := range pending {
		errs = append(errs, validateSyncID(request.ID, seen, path.Index(i).Child("id"))...)
		errs = append(errs, validateActor(request.Actor, path.Index(i).Child("actor"))...)
	}
	return errs
}

func validateActor(actor string, path *field.Path) field.ErrorList {
	if actor == "" {
		return field.ErrorList{field.Required(path, "must be the user who made the request")}
	}
	return nil
}

// validateEditedBy rejects a status that changes the author of the spec.
func validateEditedBy(by, before *configbutler.AutomatedBy) field.ErrorList {
	if equality.Semantic.DeepEqual(by, before) {
		return nil
	}
	return field.ErrorList{field.Forbidden(statusPath.Child("editedBy"),
		"only the server writes it, when somebody changes the spec: it must stay as it is")}
}
