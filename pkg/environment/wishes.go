// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// wish is a run that somebody, or the environment's spec, wants.
type wish struct {
	of    v1alpha1.SyncType
	batch string
	// by is the user who wants it, nil if the environment's spec does.
	by       *v1alpha1.AutomatedBy
	detected time.Time
	action   v1alpha1.SyncAction
	revision int64
	force    bool
}

// pinField is the field of the spec whose change asks for a run.
const pinField = "pinnedRevision"

// wishes are the runs that there are to be records of, the oldest first. A wish that has a record is among them as long as it is
// not answered.
func (s *situation) wishes() []wish {
	var wishes []wish
	for i := range s.environment.Status.PendingRequests {
		request := &s.environment.Status.PendingRequests[i]
		if request.Type == v1alpha1.EnvironmentRequestSync && !isRefresh(request) {
			wishes = append(wishes, s.requested(request))
		}
	}
	if w, there := s.rollback(); there {
		wishes = append(wishes, w)
	}
	slices.SortStableFunc(wishes, func(a, b wish) int { return a.detected.Compare(b.detected) })
	if w, there := s.automatic(); there && !slices.ContainsFunc(wishes, s.waits) {
		wishes = append(wishes, w)
	}
	return wishes
}

// waits says whether the run that is wished for has not begun.
func (s *situation) waits(w wish) bool {
	for _, record := range s.records {
		if record.Spec.Type == w.of && record.Spec.Batch == w.batch {
			return record.Status.State == v1alpha1.SyncStatePending
		}
	}
	return true
}

// isRefresh says whether a request is about what workloads refer to alone. There is one open record of that for all who ask.
func isRefresh(request *v1alpha1.PendingEnvironmentRequest) bool {
	return request.Sync != nil && request.Sync.Action == v1alpha1.SyncActionCluster
}

// askedBy is the user who has made a request.
func askedBy(request *v1alpha1.PendingEnvironmentRequest) *v1alpha1.AutomatedBy {
	return &v1alpha1.AutomatedBy{Username: request.Actor, UID: request.UID, Groups: request.Groups, Time: request.Time}
}

// requested is the run that a user asks for.
func (s *situation) requested(request *v1alpha1.PendingEnvironmentRequest) wish {
	w := wish{
		of: v1alpha1.SyncTypeEnvironment, batch: request.ID, by: askedBy(request), detected: request.Time.Time,
		action: v1alpha1.SyncActionAll, revision: s.wanted(),
	}
	if request.Sync != nil {
		w.force = request.Sync.Force
		if request.Sync.Action != "" {
			w.action = request.Sync.Action
		}
	}
	if w.force {
		w.revision = s.offered()
	}
	return w
}

// rollback is the run that brings the revision to which a user has pinned the environment.
func (s *situation) rollback() (wish, bool) {
	if s.pinned() == 0 {
		return wish{}, false
	}
	for _, edit := range slices.Backward(s.environment.Status.PendingEdits) {
		if slices.Contains(edit.Fields, pinField) {
			by := &v1alpha1.AutomatedBy{Username: edit.Actor, UID: edit.UID, Groups: edit.Groups, Time: edit.Time}
			return wish{
				of: v1alpha1.SyncTypeEnvironment, batch: syncstatus.EditBatch(edit.Generation), by: by, detected: edit.Time.Time,
				action: v1alpha1.SyncActionCatalog, revision: s.pinned(),
			}, true
		}
	}
	return wish{}, false
}

// automatic is the run that brings what the catalog offers by itself. It is wished for once for what is offered with the spec that
// there is, and not as long as a run waits that a user has asked for, or is about to.
func (s *situation) automatic() (wish, bool) {
	waits := slices.ContainsFunc(s.open(v1alpha1.SyncTypeEnvironment), func(record *v1alpha1.SyncStatus) bool {
		return record.Status.State == v1alpha1.SyncStatePending && !record.Status.AutoTriggered
	})
	if waits || !s.isBehind() || !s.withheld().ok() {
		return wish{}, false
	}
	return wish{
		of: v1alpha1.SyncTypeEnvironment, detected: s.now, action: v1alpha1.SyncActionCatalog, revision: s.offered(), batch: s.automaticBatch(),
	}, true
}

// newsDigits is how many digits of a hash tell apart what has changed in one source since the last sync.
const newsDigits = 16

// automaticBatch names what is offered with the spec that there is. What has changed in the source beside workloads, and belongs to
// the action Catalog, is offered with the revision that the environment has: it is named by its content, and by when that revision was
// brought, since the source may have once more what it had before. A run that was superseded while it waited is not in the way of
// another.
func (s *situation) automaticBatch() string {
	batch := fmt.Sprintf("auto.%s.%d", s.catalog.Status.LatestSync, s.environment.Generation)
	status := &s.environment.Status
	if status.AppliedRevision != s.offered() || s.offer == nil || s.offer.news == "" || status.LastCatalogSyncedAt == nil {
		return batch
	}
	batch = fmt.Sprintf("%s.%d.%s", batch, status.LastCatalogSyncedAt.Unix(), s.offer.news[:newsDigits])
	superseded := 0
	for _, record := range s.records {
		if strings.HasPrefix(record.Spec.Batch, batch) && record.Status.State == v1alpha1.SyncStateSuperseded {
			superseded++
		}
	}
	return fmt.Sprintf("%s.%d", batch, superseded)
}

// isBehind says whether the environment does not have what its catalog offers, as far as is known.
func (s *situation) isBehind() bool {
	if s.offered() == 0 {
		return false
	}
	return s.environment.Status.AppliedRevision != s.offered() || s.offer != nil && s.offer.changes
}

// withheld says why nothing begins by itself for which there is no record yet. What is withheld is shown, and can be asked for.
func (s *situation) withheld() verdict {
	switch {
	case !s.obstacle.ok():
		return s.obstacle
	case !s.environment.Spec.AutoSync:
		return verdict{v1alpha1.ReasonSuspended, "spec.autoSync is false"}
	case s.policy.Suspend.EnvironmentAutoSync:
		return verdict{v1alpha1.ReasonSuspended, "automatic syncs from catalogs are suspended by the SyncPolicy"}
	case s.pinned() > 0:
		return s.pin()
	}
	return s.lost
}

func (s *situation) pin() verdict {
	return verdict{v1alpha1.ReasonPinned, fmt.Sprintf("pinned at r%d by spec.pinnedRevision", s.pinned())}
}
