// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/install"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	apivalidation "github.com/configbutler/slipstream/pkg/registry/validation"
	syncstatussummary "github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// validation returns the error of writing an object over a stored one, which is nil for a new object.
type validation func(object, stored runtime.Object) error

var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

// internal returns an object in the version that the server validates.
func internal[O runtime.Object](object runtime.Object) O {
	converted, err := scheme.ConvertToVersion(object.DeepCopyObject(), configbutler.SchemeGroupVersion)
	if err != nil {
		panic(err)
	}
	return converted.(O)
}

// validateCreate validates new records.
func validateCreate(object, _ runtime.Object) error {
	var errs field.ErrorList
	switch object.(type) {
	case *v1alpha1.SyncStatus:
		errs = apivalidation.ValidateSyncStatus(internal[*configbutler.SyncStatus](object))
	case *v1alpha1.CatalogWorkload:
		errs = apivalidation.ValidateCatalogWorkload(internal[*configbutler.CatalogWorkload](object))
	case *v1alpha1.EnvironmentDependency:
		errs = apivalidation.ValidateEnvironmentDependency(internal[*configbutler.EnvironmentDependency](object))
	}
	return errs.ToAggregate()
}

// validateUpdate validates updates of records, and of everything but the status of other objects.
func validateUpdate(object, stored runtime.Object) error {
	var errs field.ErrorList
	switch object.(type) {
	case *v1alpha1.SyncStatus:
		errs = apivalidation.ValidateSyncStatusUpdate(internal[*configbutler.SyncStatus](object), internal[*configbutler.SyncStatus](stored))
	case *v1alpha1.CatalogWorkload:
		errs = apivalidation.ValidateCatalogWorkloadUpdate(
			internal[*configbutler.CatalogWorkload](object), internal[*configbutler.CatalogWorkload](stored))
	case *v1alpha1.EnvironmentDependency:
		errs = apivalidation.ValidateEnvironmentDependencyUpdate(
			internal[*configbutler.EnvironmentDependency](object), internal[*configbutler.EnvironmentDependency](stored))
	case *v1alpha1.Environment:
		errs = apivalidation.ValidateEnvironmentUpdate(internal[*configbutler.Environment](object), internal[*configbutler.Environment](stored))
	case *v1alpha1.AppCatalog:
		errs = apivalidation.ValidateAppCatalogUpdate(internal[*configbutler.AppCatalog](object), internal[*configbutler.AppCatalog](stored))
	}
	return errs.ToAggregate()
}

// validateStatus validates updates of a status.
func validateStatus(object, stored runtime.Object) error {
	var errs field.ErrorList
	switch object.(type) {
	case *v1alpha1.Environment:
		after, before := internal[*configbutler.Environment](object), internal[*configbutler.Environment](stored)
		errs = append(apivalidation.ValidateEnvironmentStatusUpdate(after, before),
			apivalidation.ValidateEnvironmentStatusRequest(after, before)...)
	case *v1alpha1.AppCatalog:
		after, before := internal[*configbutler.AppCatalog](object), internal[*configbutler.AppCatalog](stored)
		errs = append(apivalidation.ValidateAppCatalogStatusUpdate(after, before),
			apivalidation.ValidateAppCatalogStatusRequest(after, before)...)
	case *v1alpha1.SyncPipeline:
		after, before := internal[*configbutler.SyncPipeline](object), internal[*configbutler.SyncPipeline](stored)
		errs = append(apivalidation.ValidateSyncPipelineStatusUpdate(after, before),
			apivalidation.ValidateSyncPipelineStatusRequest(after, before)...)
	case *v1alpha1.NotificationSink:
		after, before := internal[*configbutler.NotificationSink](object), internal[*configbutler.NotificationSink](stored)
		errs = append(apivalidation.ValidateNotificationSinkStatusUpdate(after, before),
			apivalidation.ValidateNotificationSinkStatusRequest(after, before)...)
	}
	return errs.ToAggregate()
}

// setState sets what the server computes when an object is written.
func setState(object runtime.Object) {
	if environment, ok := object.(*v1alpha1.Environment); ok {
		environment.Status.State = syncstatussummary.Environment(environment)
	}
}
