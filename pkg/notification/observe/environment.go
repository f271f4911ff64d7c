// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Offered are the records of what an environment can take: of its catalog, and of the objects that its workloads refer to. Each is nil if
// there is none.
type Offered struct{ Catalog, Dependencies *v1alpha1.SyncStatus }

// Environment finds changes that wait for a decision, what a user has dismissed of the catalog, and what prevents syncs.
func Environment(e *v1alpha1.Environment, offered Offered) Findings {
	found := Findings{State: summary.Environment(e)}
	subject := subjectOf(string(v1alpha1.SubjectEnvironment), &e.ObjectMeta)
	if e.DeletionTimestamp != nil {
		found.Unknown = append(found.Unknown, subject.UID+"/")
		return found
	}
	dismissedFromCatalog(&found, e, subject)
	if !isObserved(e) {
		found.Unknown = append(found.Unknown, KeyOf(subject.UID, v1alpha1.NotifyPrompted), KeyOf(subject.UID, v1alpha1.NotifyFailed))
		return found
	}
	prompted(&found, e, subject, offered)
	stalled(&found, e, subject)
	return found
}

// isObserved reports whether the status of an environment says what waits for a decision: it is of the current spec, and neither a sync nor a
// comparison is in progress.
func isObserved(e *v1alpha1.Environment) bool {
	upToDate := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionCatalogUpToDate)
	return e.Generation == e.Status.ObservedGeneration && !meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionSyncing) &&
		(upToDate == nil || upToDate.Reason != v1alpha1.ReasonProgressing)
}

// IsPrompting reports whether changes may wait for a decision about an environment.
func IsPrompting(e *v1alpha1.Environment) bool {
	return isObserved(e) && len(e.Status.Conflicts) == 0 && e.Status.AppliedRevision > 0 && summary.WaitsFor(e) == summary.WaitsForUser &&
		!meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionStalled)
}

// prompted finds changes that only a user can sync or dismiss. Its key changes with what is offered, so that new changes are notified anew.
func prompted(found *Findings, e *v1alpha1.Environment, subject message.Subject, offered Offered) {
	status := &e.Status
	changed := changedIn(status)
	if !IsPrompting(e) || len(changed) == 0 {
		return
	}
	state := found.State
	finding := Finding{Lasting: true, Notification: message.Notification{
		Event: v1alpha1.NotifyPrompted, Time: changedAt(status), Severity: v1alpha1.SeverityInfo, Subject: subject,
		State: state, Headline: Headline(subject, state), Summary: changed, Names: namesOf(status.ChangedWorkloads),
		Command:   command(e.Namespace, "sync %s", e.Name),
		DedupeKey: KeyOf(subject.UID, v1alpha1.NotifyPrompted, status.LatestCatalogSync, status.LatestDependencySync),
	}}
	for _, record := range []*v1alpha1.SyncStatus{offered.Catalog, offered.Dependencies} {
		if record == nil {
			continue
		}
		n := &finding.Notification
		n.Time = latest(n.Time, record.Status.DetectedAt.Time)
		n.ChangedBy = append(n.ChangedBy, authorsOf(record)...)
		n.Commits = append(n.Commits, commitsOf(record)...)
		if record.Namespace != e.Namespace {
			finding.SourceNamespace = record.Namespace
		}
	}
	finding.Notification.ChangedBy = first(withoutDuplicates(finding.Notification.ChangedBy))
	finding.Notification.Commits = first(finding.Notification.Commits)
	found.Found = append(found.Found, finding)
}

// changedAt returns since when an environment differs from its catalog.
func changedAt(status *v1alpha1.EnvironmentStatus) time.Time {
	if condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionCatalogUpToDate); condition != nil {
		return condition.LastTransitionTime.Time
	}
	return time.Time{}
}

// withoutDuplicates returns authors without those that are listed before.
func withoutDuplicates(authors []message.Author) []message.Author {
	var out []message.Author
	for _, author := range authors {
		if !slices.Contains(out, author) {
			out = append(out, author)
		}
	}
	return out
}

// stalled finds why no sync of an environment can begin, unless its records or its catalog report that.
func stalled(found *Findings, e *v1alpha1.Environment, subject message.Subject) {
	condition := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionStalled)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return
	}
	switch condition.Reason {
	case v1alpha1.ReasonSyncFailed, v1alpha1.ReasonFieldsChangedTwice, v1alpha1.ReasonCatalogNotReady, v1alpha1.ReasonPinned,
		v1alpha1.ReasonNeverSynced, v1alpha1.ReasonSuspended:
		found.Unknown = append(found.Unknown, KeyOf(subject.UID, v1alpha1.NotifyFailed))
		return
	}
	state := found.State
	found.add(true, message.Notification{
		Event: v1alpha1.NotifyFailed, Time: condition.LastTransitionTime.Time, Severity: v1alpha1.SeverityError, Subject: subject,
		State: state, Headline: Headline(subject, state), Error: sentence(condition.Message),
		Command:   command(e.Namespace, "status environment/%s", e.Name),
		DedupeKey: KeyOf(subject.UID, v1alpha1.NotifyFailed, v1alpha1.ConditionStalled),
	})
}

// dismissedFromCatalog finds that a user has dismissed what the catalog offers.
func dismissedFromCatalog(found *Findings, e *v1alpha1.Environment, subject message.Subject) {
	status := &e.Status
	if !summary.IsCatalogDismissed(status) {
		return
	}
	state := found.State
	found.add(false, message.Notification{
		Event: v1alpha1.NotifyDismissed, Time: timeOf(status.DismissedAt, time.Time{}), Severity: v1alpha1.SeverityInfo, Subject: subject,
		Actor: status.DismissedBy,
		State: state, Headline: Headline(subject, state), Summary: changedIn(status), Names: namesOf(status.ChangedWorkloads),
		Command:   command(e.Namespace, "undismiss %s", e.Name),
		DedupeKey: KeyOf(subject.UID, v1alpha1.NotifyDismissed, status.DismissedCatalogSync),
	})
}

// changedIn counts what a sync of an environment would change by type.
func changedIn(status *v1alpha1.EnvironmentStatus) []message.Changed {
	counts := newCounts()
	for _, workload := range status.ChangedWorkloads {
		counts.add(string(workload.Kind), workload.ChangeType, 1)
	}
	for _, dependency := range status.ChangedDependencies {
		counts.add(string(dependency.Type), v1alpha1.ChangeChanged, int(dependency.Count))
	}
	return counts.sorted()
}

func namesOf(workloads []v1alpha1.WorkloadChange) []string {
	names := make([]string, 0, min(len(workloads), message.MaxNames))
	for _, workload := range workloads[:cap(names)] {
		names = append(names, workload.Name)
	}
	return names
}

// counts count changed objects by type.
type counts map[string]*message.Changed

func newCounts() counts { return counts{} }

func (c counts) add(kind string, change v1alpha1.ChangeType, n int) {
	if c[kind] == nil {
		c[kind] = &message.Changed{Type: kind}
	}
	switch change {
	case v1alpha1.ChangeAdded:
		c[kind].Added += n
	case v1alpha1.ChangeRemoved:
		c[kind].Removed += n
	default:
		c[kind].Changed += n
	}
}

func (c counts) sorted() []message.Changed {
	sorted := make([]message.Changed, 0, len(c))
	for _, changed := range c {
		sorted = append(sorted, *changed)
	}
	slices.SortFunc(sorted, func(a, b message.Changed) int { return cmp.Compare(a.Type, b.Type) })
	return sorted
}
