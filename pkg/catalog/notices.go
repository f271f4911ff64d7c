// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// Reasons of Events about problems of the intake, which concern the catalogs of a source namespace.
const (
	// reasonFilling: changes are detected faster than they are recorded.
	reasonFilling = "ChangesWaiting"
	// reasonOverflowed: the whole source is compared, because the capacity for its changes was exceeded.
	reasonOverflowed = "SourceCompared"
	// reasonBlocked: changes are in memory only, because they cannot be stored. reasonKept: they are stored again.
	reasonBlocked = "ChangesNotKept"
	reasonKept    = "ChangesKept"
)

const (
	// maxNotified is the number of source namespaces that are notified of a problem of the whole intake: those with the most changes.
	maxNotified = 5
	// noticeInterval is the minimum time between two Events with the same reason about the catalogs of a source namespace.
	noticeInterval = 10 * time.Minute
)

// notifier publishes Events about the intake. It must be called from one goroutine only.
type notifier struct {
	lister *lister
	intake *pending.Intake
	events *events
	clock  clock.PassiveClock
	// sent is when the catalogs of a namespace last had an Event with a reason.
	sent map[notice]time.Time
	// blocked are the namespaces that have been notified that their changes are not stored.
	blocked []string
}

// notice identifies Events with one reason about the catalogs of one source namespace.
type notice struct{ namespace, reason string }

// intakeNotices returns the callbacks of the intake.
func (r *reconciler) intakeNotices(ctx context.Context) pending.Notices {
	logger := klog.FromContext(ctx)
	n := &notifier{lister: r.lister, intake: r.intake, events: r.events, clock: r.shared.Clock, sent: map[notice]time.Time{}}
	return pending.Notices{
		Opened: r.queue.Add,
		Filling: func(changes, capacity int) {
			logger.Info("Pending changes of catalogs approach the capacity", "changes", changes, "capacity", capacity)
			for _, namespace := range r.intake.Busiest(maxNotified) {
				n.warn(notice{namespace, reasonFilling}, fmt.Sprintf("Changes are detected faster than they are recorded: "+
					"%d changes of all sources are pending, many of them in %s, and the capacity is %d. Records may be delayed",
					changes, namespace, capacity))
			}
		},
		Overflowed: func(namespace string) {
			logger.Info("Pending changes of catalogs exceed the capacity, comparing the whole namespace", "namespace", namespace)
			n.warn(notice{namespace, reasonOverflowed}, fmt.Sprintf("The pending changes of %s exceed the capacity: "+
				"the whole namespace is compared instead, and the record does not have the authors of these changes", namespace))
		},
		Blocked: n.storageChanged, // The intake logs the error, and retries.
	}
}

// storageChanged publishes once that changes cannot be stored, and once that they can be stored again. Events do not contain the error,
// which is for the administrator of the server.
func (n *notifier) storageChanged(failure error) {
	switch {
	case failure == nil:
		for _, namespace := range n.blocked {
			n.publish(notice{namespace, reasonKept}, corev1.EventTypeNormal, fmt.Sprintf("Changes of %s can be stored again", namespace))
		}
		n.blocked = nil
	case n.blocked == nil:
		n.blocked = n.intake.Busiest(maxNotified)
		for _, namespace := range n.blocked {
			n.warn(notice{namespace, reasonBlocked}, fmt.Sprintf("Changes of %s cannot be stored, and are pending in memory only: "+
				"if the server stops, their authors are lost", namespace))
		}
	}
}

// warn publishes a warning unless the same notice was sent within noticeInterval.
func (n *notifier) warn(of notice, message string) {
	now := n.clock.Now()
	maps.DeleteFunc(n.sent, func(_ notice, at time.Time) bool { return now.Sub(at) >= noticeInterval })
	if _, sent := n.sent[of]; sent {
		return
	}
	n.sent[of] = now
	n.publish(of, corev1.EventTypeWarning, message)
}

// publish publishes an Event about each catalog of the namespace.
func (n *notifier) publish(of notice, eventType, message string) {
	for _, catalog := range n.lister.catalogs(of.namespace) {
		n.events.recorder.Event(catalog, eventType, of.reason, message)
	}
}
