// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// ValidateSyncRequest validates a request to sync the environment called name.
func ValidateSyncRequest(request *configbutler.SyncRequest, name string) field.ErrorList {
	return append(validateNameInPath(request.Name, name), validateSyncRequestSpec(&request.Spec, specPath)...)
}

// ValidateSyncRequestWorkloads checks that the workloads of a request are among those of the environment: what its
// catalog offers, limited to the branch workloads of a Branch, and what the environment already has.
func ValidateSyncRequestWorkloads(
	request *configbutler.SyncRequest, environment *configbutler.Environment, catalog *configbutler.AppCatalog,
) field.ErrorList {
	path, known := specPath.Child("workloads"), syncedWorkloads(environment, catalog)
	var errs field.ErrorList
	for i, workload := range request.Spec.Workloads {
		if !slices.Contains(known, workload) {
			errs = append(errs, unknownWorkload(path.Index(i), workload, known, environment))
		}
	}
	return errs
}

// syncedWorkloads returns the workloads that a sync of an environment covers.
func syncedWorkloads(environment *configbutler.Environment, catalog *configbutler.AppCatalog) []configbutler.WorkloadReference {
	var known []configbutler.WorkloadReference
	for _, entry := range catalog.Status.Workloads {
		workload := configbutler.WorkloadReference{Kind: entry.Kind, Name: entry.Name}
		if environment.Spec.Type != configbutler.EnvironmentBranch || slices.Contains(environment.Spec.BranchWorkloads, workload) {
			known = append(known, workload)
		}
	}
	for _, change := range environment.Status.ChangedWorkloads {
		if workload := (configbutler.WorkloadReference{Kind: change.Kind, Name: change.Name}); !slices.Contains(known, workload) {
			known = append(known, workload)
		}
	}
	return known
}

// mostNamed limits how many workloads an error lists. The catalog lists all.
const mostNamed = 20

func unknownWorkload(
	path *field.Path, workload configbutler.WorkloadReference, known []configbutler.WorkloadReference, environment *configbutler.Environment,
) *field.Error {
	name := nameOfWorkload(workload)
	switch n := len(known); {
	case n == 0:
		return field.Invalid(path, name, fmt.Sprintf("AppCatalog %s offers no workload for this environment yet", catalogOf(environment)))
	case n > mostNamed:
		return field.Invalid(path, name,
			fmt.Sprintf("is none of the %d workloads of this environment, which status.workloads of AppCatalog %s lists",
				n, catalogOf(environment)))
	}
	names := make([]string, len(known))
	for i, each := range known {
		names[i] = nameOfWorkload(each)
	}
	return field.NotSupported(path, name, names)
}

// nameOfWorkload formats a workload as kind/name.
func nameOfWorkload(workload configbutler.WorkloadReference) string {
	return fmt.Sprintf("%s/%s", workload.Kind, workload.Name)
}

// ValidateUndismissal validates a request to prompt again for what was dismissed in the named environment.
func ValidateUndismissal(request *configbutler.Undismissal, name string) field.ErrorList {
	return validateNameInPath(request.Name, name)
}

// ValidateRediscovery validates a request to rediscover the dependencies of the named environment.
func ValidateRediscovery(request *configbutler.Rediscovery, name string) field.ErrorList {
	return validateNameInPath(request.Name, name)
}

// ValidateConflictResolution validates decisions about the conflicts of the named environment.
func ValidateConflictResolution(
	request *configbutler.ConflictResolution, name string, conflicts []configbutler.WorkloadConflict,
) field.ErrorList {
	errs := validateNameInPath(request.Name, name)
	if len(request.Spec.Keep)+len(request.Spec.Take) == 0 {
		return append(errs, field.Required(specPath, "name fields to keep, fields to take, or both"))
	}
	if problems := validateChoiceLists(&request.Spec, specPath); len(problems) > 0 {
		return append(errs, problems...)
	}
	decisions := decisions{conflicts: conflicts, made: map[decision]bool{}}
	errs = append(errs, decisions.add(request.Spec.Keep, specPath.Child("keep"))...)
	errs = append(errs, decisions.add(request.Spec.Take, specPath.Child("take"))...)
	return append(errs, decisions.declared(request.Spec.Take, specPath.Child("take"))...)
}

func validateSyncRequestSpec(spec *configbutler.SyncRequestSpec, path *field.Path) field.ErrorList {
	errs := validateOneOf(spec.Action, path.Child("action"),
		configbutler.SyncActionCatalog, configbutler.SyncActionCluster, configbutler.SyncActionAll)
	const unless = "must be absent when action is %s, which does not bring it"
	if spec.Action == configbutler.SyncActionCluster && spec.ExpectedCatalogSync != "" {
		errs = append(errs, field.Forbidden(path.Child("expectedCatalogSync"), fmt.Sprintf(unless, spec.Action)))
	}
	if spec.Action == configbutler.SyncActionCatalog && spec.ExpectedDependencySync != "" {
		errs = append(errs, field.Forbidden(path.Child("expectedDependencySync"), fmt.Sprintf(unless, spec.Action)))
	}
	return append(errs, validateWorkloadReferences(spec.Workloads, path.Child("workloads"))...)
}

// validateChoiceLists validates what does not depend on the conflicts.
func validateChoiceLists(spec *configbutler.ConflictResolutionSpec, path *field.Path) field.ErrorList {
	return append(validateChoices(spec.Keep, path.Child("keep")), validateChoices(spec.Take, path.Child("take"))...)
}

func validateChoices(choices []configbutler.ConflictChoice, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(choices); n > v1alpha1.MaxConflicts {
		errs = append(errs, field.TooMany(path, n, v1alpha1.MaxConflicts))
	}
	workloads := make([]configbutler.WorkloadReference, len(choices))
	for i, choice := range choices {
		workloads[i] = configbutler.WorkloadReference{Kind: choice.Kind, Name: choice.Name}
		fieldsPath := path.Index(i).Child("fields")
		if n := len(choice.Fields); n > v1alpha1.MaxConflicts {
			errs = append(errs, field.TooMany(fieldsPath, n, v1alpha1.MaxConflicts))
			continue
		}
		errs = append(errs, validateUnique(choice.Fields, fieldsPath)...)
	}
	return append(errs, validateWorkloadReferences(workloads, path)...)
}

// decision is about one field of a workload.
type decision struct {
	workload configbutler.WorkloadReference
	field    string
}

// decisions are the decisions about conflicts so far.
type decisions struct {
	conflicts []configbutler.WorkloadConflict
	made      map[decision]bool
}

// add adds decisions. Each must be about an existing conflict without a decision.
func (d decisions) add(choices []configbutler.ConflictChoice, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, choice := range choices {
		path := path.Index(i)
		workload := configbutler.WorkloadReference{Kind: choice.Kind, Name: choice.Name}
		open := d.fieldsOf(workload)
		if len(open) == 0 {
			errs = append(errs, d.unknown(workload, path))
			continue
		}
		fields := choice.Fields
		if len(fields) == 0 {
			fields = open
		}
		for _, name := range fields {
			made := decision{workload: workload, field: name}
			switch {
			case !slices.Contains(open, name):
				errs = append(errs, field.NotSupported(path.Child("fields"), name, open))
			case d.made[made]:
				errs = append(errs, field.Duplicate(path.Child("fields"), name))
			}
			d.made[made] = true
		}
	}
	return errs
}

// declared rejects taking fields that the environment's own patches set.
func (d decisions) declared(take []configbutler.ConflictChoice, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, choice := range take {
		for _, name := range choice.Fields {
			if d.isDeclared(configbutler.WorkloadReference{Kind: choice.Kind, Name: choice.Name}, name) {
				errs = append(errs, field.Forbidden(path.Index(i).Child("fields"),
					name+" is set by the environment's own patches: to take what the catalog offers, take it out of spec.patches"))
			}
		}
	}
	return errs
}

func (d decisions) isDeclared(workload configbutler.WorkloadReference, name string) bool {
	return slices.ContainsFunc(d.conflicts, func(conflict configbutler.WorkloadConflict) bool {
		return conflict.Kind == workload.Kind && conflict.Name == workload.Name &&
			slices.ContainsFunc(conflict.Fields, func(f configbutler.FieldConflict) bool {
				return f.Field == name && slices.Contains(f.Managers, v1alpha1.FieldManager)
			})
	})
}

// fieldsOf returns the conflicting fields of a workload.
func (d decisions) fieldsOf(workload configbutler.WorkloadReference) []string {
	var fields []string
	for _, conflict := range d.conflicts {
		if conflict.Kind == workload.Kind && conflict.Name == workload.Name {
			for _, f := range conflict.Fields {
				fields = append(fields, f.Field)
			}
		}
	}
	return fields
}

// unknown returns the error for a workload without conflicts. It lists those with conflicts.
func (d decisions) unknown(workload configbutler.WorkloadReference, path *field.Path) *field.Error {
	name := nameOfWorkload(workload)
	if len(d.conflicts) == 0 {
		return field.Invalid(path, name, "has no conflict: the environment's status.conflicts is empty")
	}
	known := make([]string, len(d.conflicts))
	for i, conflict := range d.conflicts {
		known[i] = nameOfWorkload(configbutler.WorkloadReference{Kind: conflict.Kind, Name: conflict.Name})
	}
	return field.NotSupported(path, name, known)
}
