// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/ledger"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// changePosition returns the resourceVersion from which the sink needs Changes; ok is false if it needs none. It is 0 for a sink that needs
// them from now on.
func (q *queue) changePosition() (position uint64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.selection == nil || q.selection.spec.Suspend || !q.selection.followsChanges() {
		return 0, false
	}
	return parseVersion(q.State.Cursor), true
}

// cursorInterval is how often the position among Changes is stored while none is collected. After a start, at most those of that time are
// read again.
const cursorInterval = time.Minute

// reach notes that a watch of Changes has come to a resourceVersion. Changes that were stored together have the same one: all of an earlier one
// have been collected, but maybe not all of this one.
func (q *queue) reach(version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	reached := parseVersion(q.State.Reached)
	if version <= max(reached, parseVersion(q.State.Cursor)) {
		return
	}
	if reached > 0 {
		q.State.Cursor = q.State.Reached
	}
	q.State.Reached, q.State.Partial = strconv.FormatUint(version, 10), nil
	q.moved()
}

// advance notes that all Changes up to a resourceVersion were collected.
func (q *queue) advance(version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advanceLocked(version)
}

func (q *queue) advanceLocked(version uint64) {
	if version <= parseVersion(q.State.Cursor) {
		return
	}
	q.State.Cursor = strconv.FormatUint(version, 10)
	if version >= parseVersion(q.State.Reached) {
		q.State.Reached, q.State.Partial = "", nil
	}
	q.moved()
}

// moved stores the position now and then. It is also stored together with the Changes that are pending.
func (q *queue) moved() {
	if now := q.now(); now.Sub(q.cursorStored) >= cursorInterval {
		q.cursorStored, q.changed.state = now, true
		q.signal()
	}
}

// hasCollected reports whether a Change was collected, or is older than those that are.
func (q *queue) hasCollected(change *v1alpha1.Change) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.hasCollectedLocked(parseVersion(change.ResourceVersion), change.UID)
}

func (q *queue) hasCollectedLocked(version uint64, uid types.UID) bool {
	return version <= parseVersion(q.State.Cursor) ||
		version == parseVersion(q.State.Reached) && slices.Contains(q.State.Partial, uid)
}

// selectsChange reports whether the sink is notified of a Change.
func (q *queue) selectsChange(change *v1alpha1.Change, n *message.Notification, destinations []labels.Set) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.selection != nil && !q.selection.spec.Suspend && q.selection.selectsChange(change, n, destinations)
}

// collectedChange is a Change of which a sink is notified.
type collectedChange struct {
	uid     types.UID
	version uint64
	entry   ledger.Entry
}

// newCollectedChange returns a Change with its notification.
func newCollectedChange(change *v1alpha1.Change, n message.Notification) collectedChange {
	of := typeOf(&change.Spec.Object)
	return collectedChange{
		uid: change.UID, version: parseVersion(change.ResourceVersion),
		entry: ledger.Entry{Notification: n, Change: &ledger.ChangeReference{
			Namespace: change.Namespace, Name: change.Name, Group: of.Group, Resource: of.Resource,
		}},
	}
}

// addChange collects a Change of a watch. That it was collected is stored together with it.
func (q *queue) addChange(c collectedChange) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hasCollectedLocked(c.version, c.uid) {
		return
	}
	q.add(c.entry)
	if c.version == parseVersion(q.State.Reached) {
		q.State.Partial = append(q.State.Partial, c.uid)
	}
}

// addListed collects the Changes of a list with a resourceVersion, the earliest first. That all were collected is stored together with them.
func (q *queue) addListed(changes *ledger.Digest, version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	slices.SortStableFunc(changes.Listed, func(a, b ledger.Entry) int { return a.Notification.Time.Compare(b.Notification.Time) })
	for _, entry := range changes.Listed {
		q.add(entry)
		changes.AddCount(&entry.Notification, -1, entry.Notification.Time)
	}
	for _, left := range changes.Counts {
		q.Pending.AddCount(&message.Notification{Event: left.Event}, left.Count, q.now())
		q.changed.pending = true
	}
	q.advanceLocked(version)
}

func parseVersion(version string) uint64 {
	parsed, _ := strconv.ParseUint(version, 10, 64) // Empty is 0: from now on.
	return parsed
}
