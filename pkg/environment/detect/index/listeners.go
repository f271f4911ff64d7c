// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Listener hears of an environment of whose copies something else is known than before, and of which objects. It must not block.
type Listener func(environment types.NamespacedName, changed []Object)

// listeners are told after what they hear of is true.
type listeners struct {
	mutex sync.Mutex
	next  int
	of    map[int]Listener
}

// Subscribe has a listener told, until stop is called, of what Set and Rebuild change. A call may go on when stop returns.
func (l *listeners) Subscribe(listener Listener) (stop func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.of == nil {
		l.of = map[int]Listener{}
	}
	number := l.next
	l.next++
	l.of[number] = listener
	return func() {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		delete(l.of, number)
	}
}

func (l *listeners) tell(environment types.NamespacedName, changed []Object) {
	if len(changed) == 0 {
		return
	}
	l.mutex.Lock()
	all := slices.Collect(maps.Values(l.of))
	l.mutex.Unlock()
	for _, listener := range all {
		listener(environment, changed)
	}
}
