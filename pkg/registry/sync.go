// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// mirrorSync is the subresource sync of a GitDestination. It adds the request to the status of the destination, from
// where the current or next leader processes it, and waits for a while for the result.
type mirrorSync struct {
	// destinations updates the status of GitDestinations, records reads GitDestinationStatuses.
	destinations, records *genericregistry.Store
	clock                 clock.PassiveClock
	waitTimeout           time.Duration
}

func (s *mirrorSync) endpoint() *requestREST[*configbutler.MirrorSync] {
	return &requestREST[*configbutler.MirrorSync]{
		newRequest: func() *configbutler.MirrorSync { return &configbutler.MirrorSync{} },
		validate:   s.validate, execute: s.execute,
	}
}

// validate rejects an invalid request.
func (s *mirrorSync) validate(ctx context.Context, name string, request *configbutler.MirrorSync) error {
	if err := invalid("MirrorSync", name, validation.ValidateMirrorSync(request, name)); err != nil {
		return err
	}
	if _, err := read[*configbutler.GitDestination](ctx, s.destinations, name); err != nil {
		return err
	}
	selected, err := s.selected(ctx, name)
	if err != nil {
		return err
	}
	return invalid("MirrorSync", name, validation.ValidateMirrorSyncTypes(request, selected))
}

// selected returns the types that the rules of the destination select, as recorded by the leader.
func (s *mirrorSync) selected(ctx context.Context, name string) ([]configbutler.ResourceType, error) {
	record, err := read[*configbutler.GitDestinationStatus](ctx, s.records, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	types := make([]configbutler.ResourceType, len(record.Status.Watches))
	for i, watched := range record.Status.Watches {
		types[i] = watched.ResourceType
	}
	return types, nil
}

// execute persists a request and waits for its outcome.
func (s *mirrorSync) execute(ctx context.Context, name string, request *configbutler.MirrorSync, dryRun []string) error {
	pending := configbutler.PendingSync{
		ID: string(uuid.NewUUID()), Time: metav1.NewTime(s.clock.Now().Truncate(time.Second)),
		Types: request.Spec.Types, Full: request.Spec.Full,
	}
	_, err := change(ctx, s.destinations, name, dryRun, func(destination *configbutler.GitDestination) error {
		if destination.Spec.Suspend {
			return refused("gitdestinations", name, "spec.suspend is set, so nothing is written; lift it, and everything is compared")
		}
		if n := len(destination.Status.PendingSyncs); n >= v1alpha1.MaxPendingSyncs {
			return apierrors.NewTooManyRequests(
				fmt.Sprintf("%d requests wait for this destination; its GitDestinationStatus says why", n), requestRetrySeconds)
		}
		destination.Status.PendingSyncs = append(destination.Status.PendingSyncs, pending)
		return nil
	})
	if err != nil {
		return err
	}
	request.Status = configbutler.MirrorSyncStatus{Accepted: true, Message: "Would compare " + mirrorSyncScope(request) + " (dry run)"}
	if !dryrun.IsDryRun(dryRun) {
		request.Status.ID = pending.ID
		s.answer(ctx, name, pending.ID, &request.Status)
	}
	return nil
}

// answer waits for a while for the result and writes it into the answer.
func (s *mirrorSync) answer(ctx context.Context, name, id string, answer *configbutler.MirrorSyncStatus) {
	answer.Message = later("accepted", name, id)
	await(ctx, s.waitTimeout, s.records, name, "", func(record *configbutler.GitDestinationStatus) bool {
		i := slices.IndexFunc(record.Status.Syncs, func(sync configbutler.SyncProgress) bool { return sync.ID == id })
		if i < 0 {
			return false
		}
		answer.Found, answer.Message = record.Status.Syncs[i].DeepCopy(), later("under way", name, id)
		return answer.Found.CompletionTime != nil
	})
	if answer.Found != nil && answer.Found.CompletionTime != nil {
		found := &v1alpha1.SyncProgress{}
		if err := v1alpha1.Convert_configbutler_SyncProgress_To_v1alpha1_SyncProgress(answer.Found, found, nil); err == nil {
			answer.Message = summary.Comparison(found)
		}
	}
}

// later returns the message for a request that is not finished, with the place of its result.
func later(state, name, id string) string {
	return fmt.Sprintf("The request is %s; status.syncs of GitDestinationStatus %s describes it under the id %s", state, name, id)
}

// mirrorSyncScope returns what a request compares, for messages.
func mirrorSyncScope(request *configbutler.MirrorSync) string {
	switch {
	case len(request.Spec.Types) > 0:
		return strings.Join(request.Spec.Types, ", ")
	case request.Spec.Full:
		return "all types with the branch, read anew"
	default:
		return "all types"
	}
}
