// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/events"
)

// Reasons of Events about a destination that are not reasons of its conditions.
const (
	// reasonSeeded reports the number of files that a comparison has written.
	reasonSeeded = "Seeded"
	// reasonOrphansRemoved reports the number of files that were removed because no object maps to them, or no rule selects their type
	// any more.
	reasonOrphansRemoved = "OrphansRemoved"
	// reasonBacklogLimitReached reports that too many changes waited, and that a comparison with the cluster replaces them.
	reasonBacklogLimitReached = "BacklogLimitReached"
	// reasonNotAppliable reports pushed files that server-side apply cannot restore.
	reasonNotAppliable = "NotAppliable"
	// reasonNotRendered reports objects that cannot be written as files.
	reasonNotRendered = "NotRendered"
	// reasonBypass is the reason of Events of objects that were changed by others than what manages them.
	reasonBypass = "ManagerBypassed"
)

// notRenderedMessage returns the message of an Event with reasonNotRendered about a number of objects. err is the error of one of them.
func notRenderedMessage(objects int, err error) string {
	if objects == 1 {
		return fmt.Sprintf("An object is not written to Git, because it cannot be written as a file: %v", err)
	}
	return fmt.Sprintf("%d objects are not written to Git, because they cannot be written as files, among them: %v", objects, err)
}

// troublesOf returns the problems that conditions report, for Events. A suspended object keeps its last problem.
func troublesOf(conditions []metav1.Condition, before events.Troubles) events.Troubles {
	now := events.ReadyReasons{Keep: []string{v1alpha1.ReasonSuspended}}.Troubles(conditions, before)
	for _, c := range conditions {
		switch c.Type {
		case v1alpha1.ConditionOwnershipConflict:
			if c.Status == metav1.ConditionTrue && !reportedByReady(conditions, c.Reason) {
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

// reportedByReady reports whether the condition Ready is False with a reason.
func reportedByReady(conditions []metav1.Condition, reason string) bool {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == reason
}
