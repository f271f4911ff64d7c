// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// resolve is the subresource resolve of an Environment. The run with the conflicts is retried with the decisions.
func (r *environmentRequests) resolve() *requestREST[*configbutler.ConflictResolution] {
	return &requestREST[*configbutler.ConflictResolution]{
		newRequest: func() *configbutler.ConflictResolution { return &configbutler.ConflictResolution{} },
		validate: func(ctx context.Context, name string, request *configbutler.ConflictResolution) error {
			environment, err := read[*configbutler.Environment](ctx, r.environments, name)
			if err != nil {
				return err
			}
			return validateResolution(environment, request)
		},
		execute: r.executeResolution,
	}
}

// validateResolution rejects decisions about fields that are not in conflict.
func validateResolution(environment *configbutler.Environment, request *configbutler.ConflictResolution) error {
	return invalid("ConflictResolution", environment.Name,
		validation.ValidateConflictResolution(request, environment.Name, environment.Status.Conflicts))
}

func (r *environmentRequests) executeResolution(
	ctx context.Context, name string, request *configbutler.ConflictResolution, dryRun []string,
) error {
	pending, err := r.newRequest(ctx, configbutler.EnvironmentRequestResolve)
	if err != nil {
		return err
	}
	pending.Resolve = request.Spec.DeepCopy()
	var records []*v1alpha1.SyncStatus
	environment, err := r.addRequest(ctx, name, dryRun, pending, func(stored *configbutler.Environment) error {
		records = r.conflicted(ctx, stored) // Read before the update: the controller may process the request at once.
		return validateResolution(stored, request)
	})
	if err != nil {
		return err
	}
	request.Status = configbutler.RequestOutcome{Accepted: true}
	answer, decided := &request.Status, decisions(&request.Spec, environment.Status.Conflicts)
	if dryrun.IsDryRun(dryRun) {
		answer.Message = fmt.Sprintf("Would %s (dry run)", decided)
		return nil
	}
	answer.ID = pending.ID
	if r.awaitStart(ctx, environment, pending.ID, func() bool { return r.moved(ctx, records) }) == nil {
		answer.Message = waiting(environment, pending.ID)
		return nil
	}
	r.moved(ctx, records)
	answer.Message = "Decided: " + decided
	addRecords(answer, records...)
	return nil
}

// moved reads records again, and reports whether one of them is no longer Conflicted.
func (r *environmentRequests) moved(ctx context.Context, records []*v1alpha1.SyncStatus) bool {
	moved := false
	for i, record := range records {
		if now, err := getRecord(ctx, r.records, record.Name); err == nil {
			records[i], moved = now, moved || now.Status.State != v1alpha1.SyncStateConflicted
		}
	}
	return moved
}

// conflicted returns the records of an environment's runs that have unresolved conflicts.
func (r *environmentRequests) conflicted(ctx context.Context, environment *configbutler.Environment) []*v1alpha1.SyncStatus {
	selector := labels.SelectorFromSet(labels.Set{
		v1alpha1.LabelEnvironment: environment.Name, v1alpha1.LabelSyncType: string(v1alpha1.SyncTypeEnvironment),
	})
	list, err := listRecords(ctx, r.records, selector)
	if err != nil {
		return nil // The decisions are processed all the same.
	}
	var found []*v1alpha1.SyncStatus
	for i := range list.Items {
		item := &list.Items[i]
		if item.Status.State != configbutler.SyncStateConflicted || item.Spec.Subject.UID != environment.UID {
			continue
		}
		if record, err := versioned(item); err == nil {
			found = append(found, record)
		}
	}
	return found
}

// decisions returns a clause about the decisions and the number of fields they cover.
func decisions(spec *configbutler.ConflictResolutionSpec, conflicts []configbutler.WorkloadConflict) string {
	var said []string
	for _, each := range []struct {
		verb    string
		choices []configbutler.ConflictChoice
	}{{"keep", spec.Keep}, {"take", spec.Take}} {
		if n := chosen(each.choices, conflicts); n > 0 {
			said = append(said, each.verb+" "+summary.Count(n, "field"))
		}
	}
	return strings.Join(said, " and ")
}

// chosen counts the fields of the choices. A choice without fields covers all conflicting fields of the workload.
func chosen(choices []configbutler.ConflictChoice, conflicts []configbutler.WorkloadConflict) int {
	count := 0
	for _, choice := range choices {
		count += len(choice.Fields)
		for _, conflict := range conflicts {
			if len(choice.Fields) == 0 && conflict.Kind == choice.Kind && conflict.Name == choice.Name {
				count += len(conflict.Fields)
			}
		}
	}
	return count
}

// rediscover is the subresource rediscover of an Environment.
func (r *environmentRequests) rediscover() *requestREST[*configbutler.Rediscovery] {
	return &requestREST[*configbutler.Rediscovery]{
		newRequest: func() *configbutler.Rediscovery { return &configbutler.Rediscovery{} },
		validate: func(_ context.Context, name string, request *configbutler.Rediscovery) error {
			return invalid("Rediscovery", name, validation.ValidateRediscovery(request, name))
		},
		execute: r.executeRediscovery,
	}
}

func (r *environmentRequests) executeRediscovery(
	ctx context.Context, name string, request *configbutler.Rediscovery, dryRun []string,
) error {
	pending, err := r.newRequest(ctx, configbutler.EnvironmentRequestRediscover)
	if err != nil {
		return err
	}
	environment, err := r.addRequest(ctx, name, dryRun, pending, func(*configbutler.Environment) error { return nil })
	if err != nil {
		return err
	}
	request.Status = configbutler.RequestOutcome{Accepted: true}
	answer := &request.Status
	if dryrun.IsDryRun(dryRun) {
		answer.Message = "Would find anew what workloads refer to (dry run)"
		return nil
	}
	answer.ID = pending.ID
	found := r.awaitStart(ctx, environment, pending.ID, func() bool { return false })
	if found == nil {
		answer.Message = waiting(environment, pending.ID)
		return nil
	}
	answer.Message = "What workloads refer to has been found anew: " + environmentState(found)
	if open := found.Status.LatestDependencySync; open != "" {
		answer.SyncStatuses = []string{open}
	}
	return nil
}
