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

// mutationCache has records as they were last written, until the informer's cache has the same state. Without it, a catalog with a failed
// record would be reported ready for as long as the informer's cache is behind.
type mutationCache struct {
	mu      sync.Mutex
	records map[types.NamespacedName]*v1alpha1.SyncStatus
}

func newMutationCache() *mutationCache {
	return &mutationCache{records: map[types.NamespacedName]*v1alpha1.SyncStatus{}}
}

func keyOf(record *v1alpha1.SyncStatus) types.NamespacedName {
	return types.NamespacedName{Namespace: record.Namespace, Name: record.Name}
}

// set adds or replaces a record that has been written.
func (c *mutationCache) set(record *v1alpha1.SyncStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records[keyOf(record)] = record
}

// delete removes a record that has been deleted.
func (c *mutationCache) delete(record *v1alpha1.SyncStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.records, keyOf(record))
}

// forget removes the records of a catalog.
func (c *mutationCache) forget(catalog types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.records, func(_ types.NamespacedName, record *v1alpha1.SyncStatus) bool {
		return record.Spec.Subject.UID == catalog
	})
}

// merge returns the cached records of a catalog, updated to the state that was last written. It removes the records that the informer's
// cache has by now.
func (c *mutationCache) merge(cached []*v1alpha1.SyncStatus, catalog types.UID) []*v1alpha1.SyncStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(cached)
	for key, written := range c.records {
		if written.Spec.Subject.UID != catalog {
			continue
		}
		switch at := slices.IndexFunc(out, func(record *v1alpha1.SyncStatus) bool { return keyOf(record) == key }); {
		case at < 0:
			out = append(out, written)
		case compareProgress(out[at], written) < 0:
			out[at] = written
		default:
			delete(c.records, key)
		}
	}
	return out
}

// compareProgress orders two states of a record by time: by attempt, then by the state within the attempt.
func compareProgress(a, b *v1alpha1.SyncStatus) int {
	return cmp.Or(cmp.Compare(a.Status.Attempts, b.Status.Attempts), cmp.Compare(stageOf(a), stageOf(b)))
}

// stageOf returns the position of a state within an attempt.
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
