// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// unseen are records as they were last written, until the cache has them like that. Without them, a catalog of which a
// record says that something has failed would be ready for the moment that the cache needs to hear of it.
type unseen struct {
	mu      sync.Mutex
	records map[types.NamespacedName]*v1alpha1.SyncStatus
}

func newUnseen() *unseen { return &unseen{records: map[types.NamespacedName]*v1alpha1.SyncStatus{}} }

func keyOf(record *v1alpha1.SyncStatus) types.NamespacedName {
	return types.NamespacedName{Namespace: record.Namespace, Name: record.Name}
}

// wrote notes a record that has been written.
func (u *unseen) wrote(record *v1alpha1.SyncStatus) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.records[keyOf(record)] = record
}

// gone forgets a record that has been deleted.
func (u *unseen) gone(record *v1alpha1.SyncStatus) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.records, keyOf(record))
}

// forget lets go of the records of a catalog.
func (u *unseen) forget(catalog types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.records, func(_ types.NamespacedName, record *v1alpha1.SyncStatus) bool {
		return record.Spec.Subject.UID == catalog
	})
}

// over lays what has been written of a catalog over what the cache has of it.
func (u *unseen) over(cached []*v1alpha1.SyncStatus, catalog types.UID) []*v1alpha1.SyncStatus {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := slices.Clone(cached)
	for key, written := range u.records {
		if written.Spec.Subject.UID != catalog {
			continue
		}
		switch at := slices.IndexFunc(out, func(record *v1alpha1.SyncStatus) bool { return keyOf(record) == key }); {
		case at < 0:
			out = append(out, written)
		case compareAges(out[at], written) < 0:
			out[at] = written
		default:
			delete(u.records, key)
		}
	}
	return out
}

// compareAges orders what a record is in its life: attempt by attempt, and in each state by state.
func compareAges(a, b *v1alpha1.SyncStatus) int {
	return cmp.Or(cmp.Compare(a.Status.Attempts, b.Status.Attempts), cmp.Compare(stageOf(a), stageOf(b)))
}

// stageOf is how far an attempt has come.
func stageOf(record *v1alpha1.SyncStatus) int {
	switch record.Status.State {
	case v1alpha1.SyncStateRetrying:
		return 0
	case v1alpha1.SyncStateManualIntervention:
		return 2
	case v1alpha1.SyncStateDismissed:
		return 3
	}
	return 1
}
