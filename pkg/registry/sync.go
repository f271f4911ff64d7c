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
)

// mirrorSync is the subresource sync of a GitDestination. It notes the request in the status of the destination, where the
// replica that leads finds it, now or when one leads again, and waits a while for what that one finds.
type mirrorSync struct {
	// destinations changes the status of GitDestinations, records reads GitDestinationStatuses.
	destinations, records *genericregistry.Store
	clock                 clock.PassiveClock
	patience              time.Duration
}

func (s *mirrorSync) endpoint() *requestREST[*configbutler.MirrorSync] {
	return &requestREST[*configbutler.MirrorSync]{
		newRequest: func() *configbutler.MirrorSync { return &configbutler.MirrorSync{} },
		judge:      s.judge, carryOut: s.carryOut,
	}
}

// judge says why a request cannot be accepted.
func (s *mirrorSync) judge(ctx context.Context, name string, request *configbutler.MirrorSync) error {
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

// selected are the types that the rules of the destination select, as the replica that leads has found.
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

// carryOut makes a request durable and waits for what comes of it.
func (s *mirrorSync) carryOut(ctx context.Context, name string, request *configbutler.MirrorSync, dryRun []string) error {
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
	request.Status = configbutler.MirrorSyncStatus{Accepted: true, Message: "Would compare " + wanted(request) + " (dry run)"}
	if !dryrun.IsDryRun(dryRun) {
		s.answer(ctx, name, pending.ID, &request.Status)
	}
	return nil
}

// answer waits a while for what is found, and says it.
func (s *mirrorSync) answer(ctx context.Context, name, id string, answer *configbutler.MirrorSyncStatus) {
	answer.Message = later("accepted", name, id)
	await(ctx, s.patience, s.records, name, "", func(record *configbutler.GitDestinationStatus) bool {
		i := slices.IndexFunc(record.Status.Syncs, func(sync configbutler.SyncProgress) bool { return sync.ID == id })
		if i < 0 {
			return false
		}
		answer.Found, answer.Message = record.Status.Syncs[i].DeepCopy(), later("under way", name, id)
		return answer.Found.CompletionTime != nil
	})
	if answer.Found != nil && answer.Found.CompletionTime != nil {
		answer.Message = foundSentence(answer.Found)
	}
}

// later says where to look for what an answer did not wait for.
func later(state, name, id string) string {
	return fmt.Sprintf("The request is %s; status.syncs of GitDestinationStatus %s tells under the id %s what is found", state, name, id)
}

// foundSentence says what was found.
func foundSentence(found *configbutler.SyncProgress) string {
	text := fmt.Sprintf("Compared %d of %d types: %d files written, %d removed", found.Compared, found.Types, found.FilesWritten, found.FilesRemoved)
	if found.OrphansHeld > 0 {
		text += fmt.Sprintf(", %d that no object maps to kept", found.OrphansHeld)
	}
	if len(found.Failures) > 0 {
		text += "; " + strings.Join(found.Failures, "; ")
	}
	return text
}

// wanted says what a request asks for.
func wanted(request *configbutler.MirrorSync) string {
	switch {
	case len(request.Spec.Types) > 0:
		return strings.Join(request.Spec.Types, ", ")
	case request.Spec.Full:
		return "all types with the branch, read anew"
	default:
		return "all types"
	}
}
