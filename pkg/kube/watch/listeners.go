// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import "sync"

// listeners calls functions that were registered for news of one sort. The zero value is ready.
type listeners[T any] struct {
	mutex     sync.Mutex
	functions []func(T)
}

func (l *listeners[T]) add(f func(T)) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.functions = append(l.functions, f)
}

// notify calls every registered function, one at a time.
func (l *listeners[T]) notify(news T) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, f := range l.functions {
		f(news)
	}
}
