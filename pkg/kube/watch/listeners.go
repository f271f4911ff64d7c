// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"sync"
)

// listeners calls the functions that are registered for one kind of event. The zero value is ready to use.
type listeners[T any] struct {
	mutex     sync.Mutex
	functions []*func(T)
}

// add registers a function until remove is called.
func (l *listeners[T]) add(f func(T)) (remove func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.functions = append(l.functions, &f)
	return func() {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.functions = slices.DeleteFunc(l.functions, func(other *func(T)) bool { return other == &f })
	}
}

// notify calls every registered function, one at a time.
func (l *listeners[T]) notify(event T) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, f := range l.functions {
		(*f)(event)
	}
}
