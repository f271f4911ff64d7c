// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// failing finds a failure in a condition of an object, which reports a failure while it has the status bad.
type failing struct {
	event     v1alpha1.NotificationEvent
	condition string
	bad       metav1.ConditionStatus
	// headline says what the failure prevents.
	headline string
	// ignored are reasons that are no failure, and do not say whether one has ended.
	ignored []string
}

// in adds what the conditions of a subject report. state is its sentence, and see the command that shows more.
func (f failing) in(found *Findings, subject message.Subject, conditions []metav1.Condition, state, see string) {
	key := KeyOf(subject.UID, f.event, f.condition)
	condition := meta.FindStatusCondition(conditions, f.condition)
	switch {
	case condition == nil || condition.Status == metav1.ConditionUnknown:
		found.Unknown = append(found.Unknown, key)
	case condition.Status != f.bad:
	case isTemporary(condition.Reason) || slices.Contains(f.ignored, condition.Reason):
		found.Unknown = append(found.Unknown, key)
	default:
		found.add(true, message.Notification{
			Event: f.event, Time: condition.LastTransitionTime.Time, Severity: v1alpha1.SeverityError, Subject: subject,
			Headline: Headline(subject, f.headline), Error: sentence(condition.Message), Command: see, DedupeKey: key,
		})
		if n := &found.Found[len(found.Found)-1].Notification; sentence(state) != n.Error {
			n.State = sentence(state)
		}
	}
}

// isTemporary reports whether a reason of a condition says nothing about whether a failure has ended.
func isTemporary(reason string) bool {
	return reason == v1alpha1.ReasonProgressing || reason == v1alpha1.ReasonDeliveryRetrying
}

// Destination finds the failures of a GitDestination.
func Destination(d *v1alpha1.GitDestination) Findings {
	state := messageOf(d.Status.Conditions, v1alpha1.ConditionReady)
	found := Findings{State: sentence(state)}
	subject := subjectOf("GitDestination", &d.ObjectMeta)
	see := "kubectl describe gitdestination " + d.Name + " -n " + d.Namespace
	failing{
		event: v1alpha1.NotifyDestinationFailing, condition: v1alpha1.ConditionReady, bad: metav1.ConditionFalse,
		headline: "Cannot write to Git",
		ignored:  []string{v1alpha1.ReasonSuspended, v1alpha1.ReasonOwnedByAnother},
	}.in(&found, subject, d.Status.Conditions, state, see)
	failing{
		event: v1alpha1.NotifyOwnershipConflict, condition: v1alpha1.ConditionOwnershipConflict, bad: metav1.ConditionTrue,
		headline: "The folder has another owner",
	}.in(&found, subject, d.Status.Conditions, state, see)
	failing{
		event: v1alpha1.NotifyDestinationFailing, condition: v1alpha1.ConditionSecretsEncrypted, bad: metav1.ConditionFalse,
		headline: "Secrets are not written",
		ignored:  []string{v1alpha1.ReasonSecretsAsIs, v1alpha1.ReasonSecretsOmitted},
	}.in(&found, subject, d.Status.Conditions, state, see)
	return found
}

// Catalog finds the failures of an AppCatalog.
func Catalog(c *v1alpha1.AppCatalog) Findings {
	state := summary.Catalog(c)
	found := Findings{State: sentence(state)}
	subject := subjectOf(string(v1alpha1.SubjectAppCatalog), &c.ObjectMeta)
	failing{
		event: v1alpha1.NotifyCatalogFailing, condition: v1alpha1.ConditionReady, bad: metav1.ConditionFalse,
		headline: "Cannot follow its source",
		ignored:  []string{v1alpha1.ReasonNeverSeen},
	}.in(&found, subject, c.Status.Conditions, state, "kubectl describe appcatalog "+c.Name+" -n "+c.Namespace)
	return found
}

// Pipeline finds the failures of a SyncPipeline.
func Pipeline(p *v1alpha1.SyncPipeline) Findings {
	state := messageOf(p.Status.Conditions, v1alpha1.ConditionReady)
	found := Findings{State: sentence(state)}
	failing{
		event: v1alpha1.NotifyPipelineFailing, condition: v1alpha1.ConditionReady, bad: metav1.ConditionFalse,
		headline: "Cannot watch or send",
		ignored:  []string{v1alpha1.ReasonSuspended, v1alpha1.ReasonPipelinesSuspended},
	}.in(&found, subjectOf("SyncPipeline", &p.ObjectMeta), p.Status.Conditions, state,
		"kubectl describe syncpipeline "+p.Name)
	return found
}

func messageOf(conditions []metav1.Condition, kind string) string {
	if condition := meta.FindStatusCondition(conditions, kind); condition != nil {
		return condition.Message
	}
	return ""
}
