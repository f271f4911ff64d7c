// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
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
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	events "k8s.io/client-go/tools/record"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/scheme"
)

const (
	// eventSource is what Events name as their source.
	eventSource = "slipstream"
	// reasonRecovered is the reason of the Event that ends a trouble.
	reasonRecovered = "Recovered"
	// longestEvent is what the API allows the text of an Event, in bytes.
	longestEvent = 1024
)

// announcer makes Events of what the conditions of objects come to: one when something keeps an object from doing what
// its spec says, one when nothing does any more. They say what the conditions say, which have no secrets.
type announcer struct {
	recorder events.EventRecorder

	mu sync.Mutex
	// told are the troubles that Events have told of, of the objects that have some.
	told map[types.UID]troubles
}

// troubles are the reasons of the conditions that call for somebody, by the conditions' types.
type troubles map[string]string

func newAnnouncer(recorder events.EventRecorder) *announcer {
	return &announcer{recorder: recorder, told: map[types.UID]troubles{}}
}

// newRecorder returns what writes Events to a cluster until ctx ends. What cannot be written is logged and dropped: the
// conditions tell it as well.
func newRecorder(ctx context.Context, cluster kubernetes.Interface) events.EventRecorder {
	broadcaster := events.NewBroadcaster(events.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: cluster.CoreV1().Events(metav1.NamespaceAll)})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: eventSource})
}

// announce tells of what is new in an object's conditions, which have been written.
func (a *announcer) announce(object eventObject, before, after []metav1.Condition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.told[object.GetUID()]
	if !ok {
		known = troublesOf(before, nil) // an earlier process has told of them
	}
	now := troublesOf(after, known)
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

// eventObject is what an Event can be about.
type eventObject interface {
	runtime.Object
	metav1.Object
}

// tell makes the Event for one condition, if it has changed.
func (a *announcer) tell(object runtime.Object, kind, before, now string, conditions []metav1.Condition) {
	message := ""
	if condition := meta.FindStatusCondition(conditions, kind); condition != nil {
		message = condition.Message
	}
	switch {
	case before == now:
	case now != "":
		a.recorder.Event(object, corev1.EventTypeWarning, now, shortened(message))
	default:
		a.recorder.Event(object, corev1.EventTypeNormal, reasonRecovered, shortened(strings.TrimSuffix(fmt.Sprintf("No longer %s: %s", before, message), ": ")))
	}
}

func shortened(text string) string {
	if len(text) <= longestEvent {
		return text
	}
	return strings.ToValidUTF8(text[:longestEvent], "")
}

// forget lets go of an object that has been deleted.
func (a *announcer) forget(object any) {
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

// troublesOf reads conditions. While it cannot be said whether an object is ready, what was told before stays.
func troublesOf(conditions []metav1.Condition, before troubles) troubles {
	now := troubles{}
	for _, c := range conditions {
		switch c.Type {
		case v1alpha1.ConditionReady:
			switch {
			case c.Reason == v1alpha1.ReasonProgressing, c.Reason == v1alpha1.ReasonSuspended:
				if reason, ok := before[c.Type]; ok {
					now[c.Type] = reason
				}
			case c.Status == metav1.ConditionFalse:
				now[c.Type] = c.Reason
			}
		case v1alpha1.ConditionOwnershipConflict:
			if c.Status == metav1.ConditionTrue && !toldByReady(conditions, c.Reason) {
				now[c.Type] = c.Reason
			}
		case v1alpha1.ConditionSecretsEncrypted:
			if c.Reason == v1alpha1.ReasonEncryptionUnavailable || c.Reason == v1alpha1.ReasonKeyUnavailable {
				now[c.Type] = c.Reason
			}
		case v1alpha1.ConditionAuthorsReported:
			if c.Status == metav1.ConditionFalse {
				now[c.Type] = c.Reason
			}
		}
	}
	return now
}

// toldByReady says whether the condition Ready is False for a reason.
func toldByReady(conditions []metav1.Condition, reason string) bool {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == reason
}
