// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// ValidateSyncPipelineStatusUpdate validates a changed status.
func ValidateSyncPipelineStatusUpdate(pipeline, old *configbutler.SyncPipeline) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&pipeline.ObjectMeta, &old.ObjectMeta, metadataPath)
	status := &pipeline.Status
	errs = append(errs, validateObserved(status.ObservedGeneration, status.Conditions)...)
	if by := status.EditedBy; by != nil && by.Username == "" {
		errs = append(errs, field.Required(statusPath.Child("editedBy", "username"), "must be the user who had the pipeline send more"))
	}
	errs = append(errs, nonnegative(statusPath, counts{
		{"watchedTypes", int64(status.WatchedTypes)}, {"objects", status.Objects}, {"pending", status.Pending},
	})...)
	errs = append(errs, validatePipelineRun(status.CurrentRun, statusPath.Child("currentRun"))...)
	errs = append(errs, validatePipelineRun(status.LastRun, statusPath.Child("lastRun"))...)
	errs = append(errs, validatePipelineRequests(status.PendingRequests, statusPath.Child("pendingRequests"))...)
	return append(errs, validateSinkStatuses(status.Sinks, statusPath.Child("sinks"))...)
}

// ValidateSyncPipelineStatusRequest also validates a status update from a client. Requests and the user in editedBy are
// recorded by the server for the authenticated user. Requests can only be removed.
func ValidateSyncPipelineStatusRequest(pipeline, old *configbutler.SyncPipeline) field.ErrorList {
	errs := validateEditedBy(pipeline.Status.EditedBy, old.Status.EditedBy)
	return append(errs, validateOnlyTakenOut(pipeline.Status.PendingRequests, old.Status.PendingRequests,
		statusPath.Child("pendingRequests"))...)
}

func validatePipelineRun(run *configbutler.PipelineRun, path *field.Path) field.ErrorList {
	if run == nil {
		return nil
	}
	errs := validateSyncID(run.ID, map[string]bool{}, path.Child("id"))
	errs = append(errs, validatePipelineScope(run.Scope, path.Child("scope"))...)
	errs = append(errs, validateOneOf(run.Phase, path.Child("phase"),
		configbutler.PipelineRunListing, configbutler.PipelineRunSending, configbutler.PipelineRunFinished)...)
	errs = append(errs, nonnegative(path, counts{{"total", run.Total}, {"done", run.Done}})...)
	path = path.Child("sinks")
	names := make([]string, len(run.Sinks))
	for i, sink := range run.Sinks {
		names[i] = sink.Name
		errs = append(errs, nonnegative(path.Index(i), counts{
			{"total", sink.Total}, {"done", sink.Done}, {"rejected", sink.Rejected},
		})...)
	}
	return append(errs, validateNamesOfSinks(names, path)...)
}

func validatePipelineRequests(pending []configbutler.PendingPipelineRequest, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(pending); n > v1alpha1.MaxPendingPipelineRequests {
		errs = append(errs, field.TooMany(path, n, v1alpha1.MaxPendingPipelineRequests))
	}
	seen := make(map[string]bool, len(pending))
	for i, request := range pending {
		path := path.Index(i)
		errs = append(errs, validateSyncID(request.ID, seen, path.Child("id"))...)
		errs = append(errs, validateActor(request.Actor, path.Child("actor"))...)
		errs = append(errs, validatePipelineScope(request.Scope, path.Child("scope"))...)
	}
	return errs
}

func validateSinkStatuses(sinks []configbutler.PipelineSinkStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := make([]string, len(sinks))
	for i, sink := range sinks {
		names[i] = sink.Name
		errs = append(errs, nonnegative(path.Index(i), counts{
			{"pending", sink.Pending}, {"delivered", sink.Delivered}, {"rejected", sink.Rejected},
			{"lastDeliveryItems", sink.LastDeliveryItems}, {"failures", int64(sink.Failures)},
		})...)
	}
	return append(errs, validateNamesOfSinks(names, path)...)
}

// counts are fields that count something.
type counts []struct {
	name  string
	value int64
}

func nonnegative(path *field.Path, of counts) field.ErrorList {
	var errs field.ErrorList
	for _, count := range of {
		errs = append(errs, apivalidation.ValidateNonnegativeField(count.value, path.Child(count.name))...)
	}
	return errs
}
