// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// touched are environments of which something else is known than before, by the namespaces of the objects that it is about.
type touched struct {
	mu sync.Mutex
	in map[string]sets.Set[types.NamespacedName]
}

func newTouched() *touched { return &touched{in: map[string]sets.Set[types.NamespacedName]{}} }

func (t *touched) add(namespace string, environments ...types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.in[namespace] == nil {
		t.in[namespace] = sets.New[types.NamespacedName]()
	}
	t.in[namespace].Insert(environments...)
}

// take returns those of a namespace, and forgets them.
func (t *touched) take(namespace string) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.in[namespace].UnsortedList()
	delete(t.in, namespace)
	return taken
}
