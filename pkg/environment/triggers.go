// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
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

// triggers determine the syncs that must have records.
type triggers struct {
	environment *v1alpha1.Environment
	// catalog is nil if it does not exist.
	catalog *v1alpha1.AppCatalog
	records records
	// offer is what a sync would change, nil while that is unknown.
	offer      *offer
	automation *automation
	now        time.Time
}

// pinField is the field of the spec whose change requests a sync.
const pinField = "pinnedRevision"

// desiredSyncs returns the syncs that must have records, oldest first. It includes syncs that already have an unfinished record.
func (t *triggers) desiredSyncs() []desiredSync {
	var desired []desiredSync
	for i := range t.environment.Status.PendingRequests {
		request := &t.environment.Status.PendingRequests[i]
		if request.Type == v1alpha1.EnvironmentRequestSync && !isRefresh(request) {
			desired = append(desired, t.requested(request))
		}
	}
	if w, there := t.rollback(); there {
		desired = append(desired, w)
	}
	slices.SortStableFunc(desired, func(a, b desiredSync) int { return a.detected.Compare(b.detected) })
	if w, there := t.automatic(); there && !slices.ContainsFunc(desired, t.records.isPending) {
		desired = append(desired, w)
	}
	return desired
}

// requested returns the sync that a user has requested.
func (t *triggers) requested(request *v1alpha1.PendingEnvironmentRequest) desiredSync {
	w := desiredSync{
		of: v1alpha1.SyncTypeEnvironment, batch: request.ID, by: requesterOf(request), detected: request.Time.Time,
		action: v1alpha1.SyncActionAll, revision: cmp.Or(pinnedRevision(t.environment), newestRevision(t.catalog)),
	}
	if request.Sync != nil {
		w.force = request.Sync.Force
		if request.Sync.Action != "" {
			w.action = request.Sync.Action
		}
	}
	if w.force {
		w.revision = newestRevision(t.catalog)
	}
	return w
}

// rollback returns the sync of the revision to which a user has pinned the environment.
func (t *triggers) rollback() (desiredSync, bool) {
	if pinnedRevision(t.environment) == 0 {
		return desiredSync{}, false
	}
	for _, edit := range slices.Backward(t.environment.Status.PendingEdits) {
		if slices.Contains(edit.Fields, pinField) {
			by := &v1alpha1.AutomatedBy{Username: edit.Actor, UID: edit.UID, Groups: edit.Groups, Time: edit.Time}
			return desiredSync{
				of: v1alpha1.SyncTypeEnvironment, batch: syncstatus.EditBatch(edit.Generation), by: by, detected: edit.Time.Time,
				action: v1alpha1.SyncActionCatalog, revision: pinnedRevision(t.environment),
			}, true
		}
	}
	return desiredSync{}, false
}

// automatic returns the automatic sync of the catalog's current content. It is desired once for each content and generation of the
// spec, and not while a sync that a user has requested is pending.
func (t *triggers) automatic() (desiredSync, bool) {
	waits := slices.ContainsFunc(t.records.open(v1alpha1.SyncTypeEnvironment), func(record *v1alpha1.SyncStatus) bool {
		return record.Status.State == v1alpha1.SyncStatePending && !record.Status.AutoTriggered
	})
	if waits || !isBehind(t.environment, t.catalog, t.offer) || !t.automation.withheld().IsZero() {
		return desiredSync{}, false
	}
	return desiredSync{
		of: v1alpha1.SyncTypeEnvironment, detected: t.now, action: v1alpha1.SyncActionCatalog,
		revision: newestRevision(t.catalog), batch: t.automaticBatch(),
	}, true
}

// hashDigits is how many digits of the hash identify the source changes since the last sync.
const hashDigits = 16

// automaticBatch returns the batch of an automatic sync, which follows from the catalog revision and the generation of the spec. Source
// changes other than workloads do not change the revision. They are identified by their hash and by the time of the last sync, since
// the source can return to earlier content. A sync that was superseded while pending does not prevent another one.
func (t *triggers) automaticBatch() string {
	batch := fmt.Sprintf("auto.%s.%d", t.catalog.Status.LatestSync, t.environment.Generation)
	status := &t.environment.Status
	if status.AppliedRevision != newestRevision(t.catalog) || t.offer == nil || t.offer.othersHash == "" || status.LastCatalogSyncedAt == nil {
		return batch
	}
	batch = fmt.Sprintf("%s.%d.%s", batch, status.LastCatalogSyncedAt.Unix(), t.offer.othersHash[:hashDigits])
	return fmt.Sprintf("%s.%d", batch, t.records.superseded(batch))
}

// isDone reports whether another sync has done what an automatic record was created for.
func (t *triggers) isDone(record *v1alpha1.SyncStatus) bool {
	return record.Status.AutoTriggered && t.offer.isKnown() && !isBehind(t.environment, t.catalog, t.offer)
}

// isWithdrawn reports whether a record is for a revision that the environment is no longer pinned to. Records in progress are
// completed.
func (t *triggers) isWithdrawn(record *v1alpha1.SyncStatus) bool {
	return syncstatus.IsEdit(record.Spec.Batch) && record.Status.Revision != pinnedRevision(t.environment) &&
		record.Status.State != v1alpha1.SyncStateInProgress
}
