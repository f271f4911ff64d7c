// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import "sync"

// listeners calls functions that were registered for news of one sort. The zero value is ready.
type listeners[T any] struct {
	mutex     sync.Mutex
	next      int
	functions map[int]func(T)
}

// add registers f until the function it returns is called. Once that has returned, f is not called again: it must
// therefore not be called from within f.
func (l *listeners[T]) add(f func(T)) (remove func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.functions == nil {
		l.functions = map[int]func(T){}
	}
	id := l.next
	l.next++
	l.functions[id] = f
	return func() {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		delete(l.functions, id)
	}
}

// notify calls every registered function, one at a time.
func (l *listeners[T]) notify(news T) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, f := range l.functions {
		f(news)
	}
}
