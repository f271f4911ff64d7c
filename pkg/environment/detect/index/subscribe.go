// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Listener is called with an environment and the objects whose copies have changed. It must not block.
type Listener func(environment types.NamespacedName, changed []Object)

// listeners are called after the index has been updated.
type listeners struct {
	mutex sync.Mutex
	next  int
	of    map[int]Listener
}

// Subscribe calls a listener for the changes of Set and Rebuild until stop is called. A call may be in progress when stop
// returns.
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

func (l *listeners) notify(environment types.NamespacedName, changed []Object) {
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
