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

// reasonRecovered is the reason of the Event that ends a trouble.
const reasonRecovered = "Recovered"

// Troubles are the reasons of the conditions that call for somebody, by the conditions' types.
type Troubles map[string]string

// Announcer makes Events of what the conditions of objects come to. They say what the conditions say, which have no secrets.
// It may be used concurrently.
type Announcer struct {
	recorder Recorder
	// read finds the troubles in conditions, given those that were told before.
	read func(conditions []metav1.Condition, before Troubles) Troubles

	mu sync.Mutex
	// told are the troubles that Events have told of, of the objects that have some.
	told map[types.UID]Troubles
}

// New returns an announcer. read finds the troubles in conditions: those that were told before are given, so that what cannot
// be said at the moment can stay as it is.
func New(recorder Recorder, read func(conditions []metav1.Condition, before Troubles) Troubles) *Announcer {
	return &Announcer{recorder: recorder, read: read, told: map[types.UID]Troubles{}}
}

// Object is what an Event can be about.
type Object interface {
	runtime.Object
	metav1.Object
}

// Announce tells of what is new in an object's conditions, which have been written.
func (a *Announcer) Announce(object Object, before, after []metav1.Condition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.told[object.GetUID()]
	if !ok {
		known = a.read(before, nil) // an earlier process has told of them
	}
	now := a.read(after, known)
	either := maps.Clone(known)
	maps.Copy(either, now)
	for _, kind := range slices.Sorted(maps.Keys(either)) {
		a.tell(object, kind, known[kind], now[kind], after)
	}
	if len(now) == 0 {
		delete(a.told, object.GetUID())
		return
	}
	a.told[object.GetUID()] = now
}

// tell makes the Event for one condition, if it has changed.
func (a *Announcer) tell(object runtime.Object, kind, before, now string, conditions []metav1.Condition) {
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

// Forget lets go of an object that has been deleted.
func (a *Announcer) Forget(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	gone, ok := object.(metav1.Object)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.told, gone.GetUID())
}
