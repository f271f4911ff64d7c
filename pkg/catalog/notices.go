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

	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// Reasons of Events about the catalogs whose changes the intake has trouble with.
const (
	// reasonFilling says that changes come faster than they are recorded.
	reasonFilling = "ChangesWaiting"
	// reasonOverflowed says that the source is compared as a whole, because there was no room for its changes.
	reasonOverflowed = "SourceCompared"
	// reasonBlocked says that changes wait in memory only, reasonKept that they do not any more.
	reasonBlocked = "ChangesNotKept"
	reasonKept    = "ChangesKept"
)

const (
	// maxTold is how many namespaces are told of what concerns the intake as a whole: those that have most changes.
	maxTold = 5
	// noticePause is the least time between two Events of a reason about the catalogs of a namespace.
	noticePause = 10 * time.Minute
)

// notices tell the catalogs of namespaces what the intake says of these. They are for one goroutine.
type notices struct {
	*catalogs
	// told is when catalogs of a namespace last had an Event of a reason.
	told map[notice]time.Time
	// blocked are the namespaces that know that their changes are not kept.
	blocked []string
}

// notice is what Events of a reason tell the catalogs of a namespace.
type notice struct{ namespace, reason string }

// intakeNotices are what becomes of what the intake tells.
func (c *catalogs) intakeNotices(ctx context.Context) pending.Notices {
	logger := klog.FromContext(ctx)
	n := &notices{catalogs: c, told: map[notice]time.Time{}}
	return pending.Notices{
		Opened: c.queue.Add,
		Filling: func(changes, capacity int) {
			logger.Info("Changes of sources of catalogs come faster than they are recorded", "changes", changes, "capacity", capacity)
			for _, namespace := range c.intake.Busiest(maxTold) {
				n.warn(notice{namespace, reasonFilling}, fmt.Sprintf("Changes come faster than they are recorded: "+
					"of all sources, %d wait, many of them of %s, and %d can. Records may be late", changes, namespace, capacity))
			}
		},
		Overflowed: func(namespace string) {
			logger.Info("A namespace is compared with its catalogs, because too much has changed in it", "namespace", namespace)
			n.warn(notice{namespace, reasonOverflowed}, fmt.Sprintf("More of %s has changed than can wait to be recorded: "+
				"it is compared as a whole, and the record does not say who made these changes", namespace))
		},
		Blocked: n.keeping, // The intake logs it, and goes on trying.
	}
}

// keeping tells once that changes cannot be kept, and that they can again. The error is for who runs the server.
func (n *notices) keeping(failure error) {
	switch {
	case failure == nil:
		for _, namespace := range n.blocked {
			n.tell(notice{namespace, reasonKept}, corev1.EventTypeNormal, fmt.Sprintf("Changes of %s are kept again", namespace))
		}
		n.blocked = nil
	case n.blocked == nil:
		n.blocked = n.intake.Busiest(maxTold)
		for _, namespace := range n.blocked {
			n.warn(notice{namespace, reasonBlocked}, fmt.Sprintf("Changes of %s cannot be kept, and wait in memory: "+
				"if the server ends, the record will not say who made them", namespace))
		}
	}
}

// warn tells the catalogs of a namespace that something is the matter, unless they have just been told.
func (n *notices) warn(of notice, message string) {
	now := n.shared.Clock.Now()
	maps.DeleteFunc(n.told, func(_ notice, at time.Time) bool { return now.Sub(at) >= noticePause })
	if _, told := n.told[of]; told {
		return
	}
	n.told[of] = now
	n.tell(of, corev1.EventTypeWarning, message)
}

func (n *notices) tell(of notice, eventType, message string) {
	for _, catalog := range n.following(of.namespace) {
		n.events.recorder.Event(catalog, eventType, of.reason, message)
	}
}
