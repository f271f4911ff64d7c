// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// EventLog records Events as lines such as "shop Normal Changed: Revision 1". Methods can be called concurrently.
type EventLog struct {
	// Describe, if set, returns what a line begins with, in place of the object's name.
	Describe func(object runtime.Object) string

	mu    sync.Mutex
	lines []string
}

// Event records an Event.
func (l *EventLog) Event(object runtime.Object, eventType, reason, message string) {
	describe := l.Describe
	if describe == nil {
		describe = nameOf
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%s %s %s: %s", describe(object), eventType, reason, message))
}

// Lines returns the recorded Events, the oldest first.
func (l *EventLog) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func nameOf(object runtime.Object) string {
	about, err := meta.Accessor(object)
	if err != nil {
		return err.Error()
	}
	return about.GetName()
}
