// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// maxSyncTypes limits the types in a request.
const maxSyncTypes = 100

// ValidateMirrorSync validates a request to compare the destination called name.
func ValidateMirrorSync(request *configbutler.MirrorSync, name string) field.ErrorList {
	errs := validateNameInPath(request.Name, name)
	path := specPath.Child("types")
	if request.Spec.Full && len(request.Spec.Types) > 0 {
		errs = append(errs, field.Forbidden(path, "must be absent when full is true, which compares all types"))
	}
	return append(errs, validateSyncTypes(request.Spec.Types, path)...)
}

// ValidateMirrorSyncTypes checks that the types of a request are among those that a destination's rules select.
func ValidateMirrorSyncTypes(request *configbutler.MirrorSync, selected []configbutler.ResourceType) field.ErrorList {
	var errs field.ErrorList
	for i, name := range request.Spec.Types {
		if slices.ContainsFunc(selected, func(t configbutler.ResourceType) bool { return name == t.Resource || name == groupResource(t) }) {
			continue
		}
		path := specPath.Child("types").Index(i)
		if len(selected) == 0 {
			errs = append(errs, field.Invalid(path, name, "no rule selects any type for this destination yet"))
			continue
		}
		errs = append(errs, field.NotSupported(path, name, namesOf(selected)))
	}
	return errs
}

func namesOf(types []configbutler.ResourceType) []string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = groupResource(t)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// groupResource formats a type as plural and group, as in deployments.apps.
func groupResource(t configbutler.ResourceType) string {
	return schema.GroupResource{Group: t.Group, Resource: t.Resource}.String()
}

func validateSyncTypes(names []string, path *field.Path) field.ErrorList {
	errs := validateUnique(names, path)
	if len(names) > maxSyncTypes {
		errs = append(errs, field.TooMany(path, len(names), maxSyncTypes))
	}
	for i, name := range names {
		plural, group, hasGroup := strings.Cut(name, ".")
		if len(utilvalidation.IsDNS1123Label(plural)) > 0 || hasGroup && len(utilvalidation.IsDNS1123Subdomain(group)) > 0 {
			errs = append(errs, field.Invalid(path.Index(i), name,
				"must be a plural in lower case such as configmaps, or plural.group such as deployments.apps"))
		}
	}
	return errs
}

func validatePendingSyncs(pending []configbutler.PendingSync, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(pending) > v1alpha1.MaxPendingSyncs {
		errs = append(errs, field.TooMany(path, len(pending), v1alpha1.MaxPendingSyncs))
	}
	seen := make(map[string]bool, len(pending))
	for i, request := range pending {
		path := path.Index(i)
		errs = append(errs, validateSyncID(request.ID, seen, path.Child("id"))...)
		errs = append(errs, validateSyncTypes(request.Types, path.Child("types"))...)
	}
	return errs
}

func validateSyncs(syncs []configbutler.SyncProgress, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[string]bool, len(syncs))
	for i, sync := range syncs {
		errs = append(errs, validateSyncID(sync.ID, seen, path.Index(i).Child("id"))...)
	}
	return errs
}

func validateSyncID(id string, seen map[string]bool, path *field.Path) field.ErrorList {
	switch {
	case id == "":
		return field.ErrorList{field.Required(path, "a request must be told from others")}
	case seen[id]:
		return field.ErrorList{field.Duplicate(path, id)}
	}
	seen[id] = true
	return nil
}
