// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// reasonRecovered is the reason of the Event for a resolved problem.
const reasonRecovered = "Recovered"

// Troubles are the reasons of conditions that report problems, by the types of the conditions.
type Troubles map[string]string

// Announcer emits Events for changes of the conditions of objects. Their messages are those of the conditions, which contain
// no secrets. It is safe for concurrent use.
type Announcer struct {
	recorder Recorder
	// read returns the problems in conditions. before are the problems that have an Event.
	read func(conditions []metav1.Condition, before Troubles) Troubles

	mu sync.Mutex
	// announced are the problems that have an Event, by object.
	announced map[types.UID]Troubles
}

// New returns an Announcer. read returns the problems in conditions. It can return those of before, which have an Event, if the
// conditions are unknown.
func New(recorder Recorder, read func(conditions []metav1.Condition, before Troubles) Troubles) *Announcer {
	return &Announcer{recorder: recorder, read: read, announced: map[types.UID]Troubles{}}
}

// Object is an object that can have Events.
type Object interface {
	runtime.Object
	metav1.Object
}

// Announce emits Events for the difference between two sets of conditions of an object. It is called after the new ones were
// written.
func (a *Announcer) Announce(object Object, before, after []metav1.Condition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.announced[object.GetUID()]
	if !ok {
		known = a.read(before, nil) // An earlier process has emitted Events for them.
	}
	now := a.read(after, known)
	either := maps.Clone(known)
	maps.Copy(either, now)
	for _, kind := range slices.Sorted(maps.Keys(either)) {
		a.emit(object, kind, known[kind], now[kind], after)
	}
	if len(now) == 0 {
		delete(a.announced, object.GetUID())
		return
	}
	a.announced[object.GetUID()] = now
}

// emit emits the Event for one condition if its problem has changed.
func (a *Announcer) emit(object runtime.Object, kind, before, now string, conditions []metav1.Condition) {
	message := ""
	if condition := meta.FindStatusCondition(conditions, kind); condition != nil {
		message = condition.Message
	}
	switch {
	case before == now:
	case now != "":
		a.recorder.Event(object, corev1.EventTypeWarning, now, message)
	default:
		a.recorder.Event(object, corev1.EventTypeNormal, reasonRecovered,
			strings.TrimSuffix(fmt.Sprintf("No longer %s: %s", before, message), ": "))
	}
}

// Forget removes the state of an object that was deleted.
func (a *Announcer) Forget(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	deleted, ok := object.(metav1.Object)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.announced, deleted.GetUID())
}
