// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// deletedLimit bounds the objects that are recorded as deleted.
const deletedLimit = 10_000

// observations has what the events of watches have shown so far: the resourceVersions of objects, and which objects were
// deleted. It is used under the Joiner's lock.
type observations struct {
	versions *versionHistory
	deleted  map[types.UID]time.Time
}

func newObservations() *observations {
	return &observations{versions: newVersionHistory(versionHistoryLimit), deleted: map[types.UID]time.Time{}}
}

// record records an event.
func (o *observations) record(event *Event, now time.Time) {
	uid := event.Object.GetUID()
	o.versions.observe(uid, event.Object.GetResourceVersion(), now)
	if event.Operation == v1alpha1.OperationDelete && len(o.deleted) < deletedLimit {
		o.deleted[uid] = now
	}
}

// findPredecessor sets what is known of the state before a recorded event.
func (o *observations) findPredecessor(w *pendingEvent) {
	if w.event.Operation == v1alpha1.OperationCreate {
		w.predecessor, w.known = "", true
		return
	}
	w.predecessor, w.known = o.versions.predecessor(w.object, w.state.uid, w.state.version)
	if !w.known {
		w.unchangedSince = o.versions.unchangedSince(w.object, w.state.uid, w.state.version)
	}
}

// reported reports whether an event has shown the change of a fact.
func (o *observations) reported(operation v1alpha1.Operation, found *storedFact) bool {
	if operation == v1alpha1.OperationDelete {
		_, reported := o.deleted[found.UID]
		return reported
	}
	seen, ok := o.versions.of(found.UID)
	return ok && !newer(found.After, seen.last)
}

// expire removes and returns the objects that were deleted so long ago that no recent fact about them is left.
func (o *observations) expire(now time.Time) (expired []types.UID) {
	for uid, at := range o.deleted {
		if now.Sub(at) > factsLifetime {
			delete(o.deleted, uid)
			expired = append(expired, uid)
		}
	}
	return expired
}
