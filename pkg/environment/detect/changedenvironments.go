// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// changedEnvironments holds the environments whose index entries have changed, by source namespace.
type changedEnvironments struct {
	mu sync.Mutex
	in map[string]sets.Set[types.NamespacedName]
}

func newChangedEnvironments() *changedEnvironments {
	return &changedEnvironments{in: map[string]sets.Set[types.NamespacedName]{}}
}

func (t *changedEnvironments) add(namespace string, environments ...types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.in[namespace] == nil {
		t.in[namespace] = sets.New[types.NamespacedName]()
	}
	t.in[namespace].Insert(environments...)
}

// take removes and returns the environments of a namespace.
func (t *changedEnvironments) take(namespace string) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.in[namespace].UnsortedList()
	delete(t.in, namespace)
	return taken
}
