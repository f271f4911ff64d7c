// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// eventLog is what Events have been made.
type eventLog struct {
	mu    sync.Mutex
	lines []string
}

// Event notes one as a line.
func (l *eventLog) Event(object runtime.Object, eventType, reason, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := ""
	if about, err := meta.Accessor(object); err == nil {
		name = about.GetName()
	}
	l.lines = append(l.lines, fmt.Sprintf("%s %s %s: %s", name, eventType, reason, message))
}

// told are the Events since the beginning.
func (l *eventLog) told() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}
