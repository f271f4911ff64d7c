// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// desiredSync is a sync that a user has requested, or that the spec of the environment requires.
type desiredSync struct {
	of    v1alpha1.SyncType
	batch string
	// by is the user who requested it, nil for an automatic sync.
	by       *v1alpha1.AutomatedBy
	detected time.Time
	action   v1alpha1.SyncAction
	revision int64
	force    bool
}

// pinField is the field of the spec whose change requests a sync.
const pinField = "pinnedRevision"

// desiredSyncs returns the syncs that must have records, oldest first. It includes syncs that already have an unfinished record.
func (s *state) desiredSyncs() []desiredSync {
	var desired []desiredSync
	for i := range s.environment.Status.PendingRequests {
		request := &s.environment.Status.PendingRequests[i]
		if request.Type == v1alpha1.EnvironmentRequestSync && !isRefresh(request) {
			desired = append(desired, s.requested(request))
		}
	}
	if w, there := s.rollback(); there {
		desired = append(desired, w)
	}
	slices.SortStableFunc(desired, func(a, b desiredSync) int { return a.detected.Compare(b.detected) })
	if w, there := s.automatic(); there && !slices.ContainsFunc(desired, s.waits) {
		desired = append(desired, w)
	}
	return desired
}

// waits reports whether a desired sync has not started.
func (s *state) waits(w desiredSync) bool {
	for _, record := range s.records {
		if record.Spec.Type == w.of && record.Spec.Batch == w.batch {
			return record.Status.State == v1alpha1.SyncStatePending
		}
	}
	return true
}

// isRefresh reports whether a request is about dependencies only. All such requests share one open record.
func isRefresh(request *v1alpha1.PendingEnvironmentRequest) bool {
	return request.Sync != nil && request.Sync.Action == v1alpha1.SyncActionCluster
}

// requesterOf returns the user who made a request.
func requesterOf(request *v1alpha1.PendingEnvironmentRequest) *v1alpha1.AutomatedBy {
	return &v1alpha1.AutomatedBy{Username: request.Actor, UID: request.UID, Groups: request.Groups, Time: request.Time}
}

// requested returns the sync that a user has requested.
func (s *state) requested(request *v1alpha1.PendingEnvironmentRequest) desiredSync {
	w := desiredSync{
		of: v1alpha1.SyncTypeEnvironment, batch: request.ID, by: requesterOf(request), detected: request.Time.Time,
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

// rollback returns the sync of the revision to which a user has pinned the environment.
func (s *state) rollback() (desiredSync, bool) {
	if s.pinned() == 0 {
		return desiredSync{}, false
	}
	for _, edit := range slices.Backward(s.environment.Status.PendingEdits) {
		if slices.Contains(edit.Fields, pinField) {
			by := &v1alpha1.AutomatedBy{Username: edit.Actor, UID: edit.UID, Groups: edit.Groups, Time: edit.Time}
			return desiredSync{
				of: v1alpha1.SyncTypeEnvironment, batch: syncstatus.EditBatch(edit.Generation), by: by, detected: edit.Time.Time,
				action: v1alpha1.SyncActionCatalog, revision: s.pinned(),
			}, true
		}
	}
	return desiredSync{}, false
}

// automatic returns the automatic sync of the catalog's current content. It is desired once for each content and generation of the
// spec, and not while a sync that a user has requested is pending.
func (s *state) automatic() (desiredSync, bool) {
	waits := slices.ContainsFunc(s.open(v1alpha1.SyncTypeEnvironment), func(record *v1alpha1.SyncStatus) bool {
		return record.Status.State == v1alpha1.SyncStatePending && !record.Status.AutoTriggered
	})
	if waits || !s.isBehind() || !s.withheld().IsZero() {
		return desiredSync{}, false
	}
	return desiredSync{
		of: v1alpha1.SyncTypeEnvironment, detected: s.now, action: v1alpha1.SyncActionCatalog, revision: s.offered(), batch: s.automaticBatch(),
	}, true
}

// newsDigits is how many digits of the hash identify the source changes since the last sync.
const newsDigits = 16

// automaticBatch returns the batch of an automatic sync, which follows from the catalog revision and the generation of the spec. Source
// changes other than workloads do not change the revision. They are identified by their hash and by the time of the last sync, since
// the source can return to earlier content. A sync that was superseded while pending does not prevent another one.
func (s *state) automaticBatch() string {
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

// isBehind reports whether the environment is known to differ from its catalog.
func (s *state) isBehind() bool {
	if s.offered() == 0 {
		return false
	}
	return s.environment.Status.AppliedRevision != s.offered() || s.offer != nil && s.offer.changes
}

// withheld returns why no automatic sync is started, ok if one can be. Users still see the changes and can request a sync.
func (s *state) withheld() conditions.Reason {
	switch {
	case !s.obstacle.IsZero():
		return s.obstacle
	case !s.environment.Spec.AutoSync:
		return conditions.Reason{Code: v1alpha1.ReasonSuspended, Message: "spec.autoSync is false"}
	case s.policy.Suspend.EnvironmentAutoSync:
		return conditions.Reason{Code: v1alpha1.ReasonSuspended, Message: "automatic syncs from catalogs are suspended by the SyncPolicy"}
	case s.pinned() > 0:
		return s.pin()
	}
	return s.lost
}

func (s *state) pin() conditions.Reason {
	return conditions.Reasonf(v1alpha1.ReasonPinned, "pinned at r%d by spec.pinnedRevision", s.pinned())
}
