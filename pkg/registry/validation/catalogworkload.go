// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// ValidateCatalogWorkload validates a new record.
func ValidateCatalogWorkload(record *configbutler.CatalogWorkload) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&record.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, metadataPath)
	return append(errs, validateCatalogWorkloadRecord(record)...)
}

// ValidateCatalogWorkloadUpdate validates a changed record.
func ValidateCatalogWorkloadUpdate(record, old *configbutler.CatalogWorkload) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&record.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, validateCatalogWorkloadRecord(record)...)
}

func validateCatalogWorkloadRecord(record *configbutler.CatalogWorkload) field.ErrorList {
	status, path := &record.Status, statusPath
	errs := validateWorkload(status.Kind, status.Name, path)
	catalog, _, _ := strings.Cut(record.Name, ".")
	if name := v1alpha1.CatalogWorkloadName(catalog, v1alpha1.WorkloadKind(status.Kind), status.Name); len(errs) == 0 && name != record.Name {
		errs = append(errs, field.Invalid(metadataPath.Child("name"), record.Name,
			fmt.Sprintf("must be CATALOG.%s.%s, by the workload that the record holds", strings.ToLower(string(status.Kind)), status.Name)))
	}
	errs = append(errs, apivalidation.ValidateNonnegativeField(status.Revision, path.Child("revision"))...)
	errs = append(errs, validateManifest(status.Manifest, path.Child("manifest"))...)
	errs = append(errs, validateManifest(status.Rendered, path.Child("rendered"))...)
	if status.Rendered != nil && status.Manifest == nil {
		errs = append(errs, field.Forbidden(path.Child("rendered"), "must be absent without the manifest that it is made of"))
	}
	return errs
}

func validateManifest(manifest *runtime.RawExtension, path *field.Path) field.ErrorList {
	if manifest != nil && len(manifest.Raw) > v1alpha1.MaxManifestBytes {
		return field.ErrorList{field.TooLong(path, "", v1alpha1.MaxManifestBytes)}
	}
	return nil
}
