// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// newRecord returns the current GitDestinationStatus of a destination. failure is the error that blocks it, nil if there is none; depth is
// the number of pending changes of its branch; watching reports whether a type is watched, and why not.
func newRecord(
	d *destination, failure error, depth int, watching func(schema.GroupVersionResource) (ok bool, message string),
) *v1alpha1.GitDestinationStatus {
	p, now, pending := d.plan.Load(), d.record.current(), d.queue.Backlog()
	status := v1alpha1.GitDestinationRecord{
		Branch: p.object.Spec.Branch, Folder: p.object.Spec.BaseFolder,
		PendingChanges: int64(pending.Rows), QueueDepth: int64(depth), OldestPendingTime: timeOrNil(d.oldestWaiting()),
		OrphansRemoved: now.orphansRemoved, OrphansHeld: now.orphansHeld, PushRetries: now.retries,
		LastPushTime: timeOrNil(now.lastPush), LastSeedTime: timeOrNil(now.compared),
		Attribution: now.authors, LeaseHolder: now.leaseHolder,
	}
	if failure != nil {
		status.LastError = printable.Text(failure.Error())
		if !p.object.Spec.Suspend && errors.Is(failure, now.failure) {
			status.NextAttemptTime = timeOrNil(now.nextAttempt)
		}
	}
	if !now.lastCommit.IsZero() {
		status.LastCommit = &v1alpha1.CommitSummary{
			SHA: now.lastCommit.String(), Time: metav1.NewTime(now.lastPush.Truncate(time.Second)),
			Message: now.lastSubject, URL: commitURL(p, now.lastCommit),
		}
	}
	for _, n := range now.files {
		status.Files += n
	}
	status.Objects = max(status.Files-status.OrphansHeld, 0)
	status.Owner = now.owner.DeepCopy()
	if state := d.proposal.Load(); state != nil && p.object.PullRequest() != nil {
		status.Proposal = state.newest.DeepCopy()
		if failure == nil && !state.problem.IsZero() {
			status.LastError = printable.Text(state.problem.Message)
		}
	}
	status.Syncs = d.seeds.syncReports()
	status.Watches = watchReports(d, now.files, watching)
	status.State = printable.Text(summarize(d, failure, gaps(p, status.Watches)))
	return &v1alpha1.GitDestinationStatus{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.key.Namespace, Name: d.key.Name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p.object, v1alpha1.SchemeGroupVersion.WithKind("GitDestination"))},
		},
		Status: status,
	}
}

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	stamp := metav1.NewTime(t.Truncate(time.Second))
	return &stamp
}

// commitURL returns the URL of a commit from the repository's webURLTemplate; empty if there is none.
func commitURL(p *destinationPlan, hash gitrepo.Hash) string {
	if p.repository == nil {
		return ""
	}
	return strings.ReplaceAll(p.repository.Spec.WebURLTemplate, "{sha}", hash.String())
}

// gaps names what the folder may lack although every change is written to it: the changes of types that cannot be watched, and what
// rules select that are not in force. It is empty if nothing can be lacking.
func gaps(p *destinationPlan, watches []v1alpha1.ResourceTypeWatch) string {
	failing := 0
	for _, each := range watches {
		if each.State == v1alpha1.WatchStateFailing {
			failing++
		}
	}
	var all []string
	if failing > 0 {
		all = append(all, summary.Count(failing, "type")+" that cannot be watched")
	}
	if p.held {
		all = append(all, "rules that are not in force")
	}
	return strings.Join(all, " and ")
}

// exceptFor adds gaps to a sentence.
func exceptFor(sentence, gaps string) string {
	if gaps == "" {
		return sentence
	}
	return sentence + ", except for " + gaps
}

// summarize describes the state of a destination in one sentence.
func summarize(d *destination, failure error, gaps string) string {
	p, pending, dropped := d.plan.Load(), d.queue.Backlog(), !d.droppedSince().IsZero()
	switch {
	case !p.problem.IsZero():
		return "Not mirrored: " + p.problem.Message
	case p.object.Spec.Suspend && dropped:
		return "Suspended; " + changesDropped
	case p.object.Spec.Suspend:
		return fmt.Sprintf("Suspended, %s", pendingText(pending.Rows))
	case failure != nil && dropped:
		return fmt.Sprintf("%s: %v; %s", stateOfFailure(failure), failure, changesDropped)
	case failure != nil:
		return fmt.Sprintf("%s: %v", stateOfFailure(failure), failure)
	case !p.referred && p.held:
		return "No rule that refers to it is in force"
	case !p.referred:
		return "No rule refers to it"
	case d.seeds.outstanding():
		return "Comparing with the cluster"
	case pending.Rows > 0:
		return pendingText(pending.Rows)
	}
	if state := d.proposal.Load(); state != nil && p.object.PullRequest() != nil {
		switch sentence := state.describe(); {
		case !state.problem.IsZero():
			return "Not proposed: " + state.problem.Message
		case sentence != "":
			return sentence
		}
	}
	return exceptFor("Up to date", gaps)
}

// stateOfFailure returns the state of a destination that an error blocks. Retries alone do not help if a user must change something.
func stateOfFailure(failure error) string {
	if isStalled(reasonOf(failure, v1alpha1.ReasonPushFailed).Code) {
		return "Not mirrored"
	}
	return "Retrying"
}

// changesDropped describes an overflow that comparisons have not replaced yet.
const changesDropped = "too many changes waited and were dropped; the branch is compared with the cluster when it is written again"

func pendingText(n int) string {
	if n == 1 {
		return "1 change waits"
	}
	return fmt.Sprintf("%d changes wait", n)
}

// watchReports returns the state of each selected type. counts are the numbers of files by type.
func watchReports(
	d *destination, counts map[schema.GroupVersionResource]int64, watching func(schema.GroupVersionResource) (bool, string),
) []v1alpha1.ResourceTypeWatch {
	var reports []v1alpha1.ResourceTypeWatch
	for _, r := range d.seeds.report() {
		report := v1alpha1.ResourceTypeWatch{
			ResourceType: resourceType(r.resource), State: v1alpha1.WatchStateWatching,
			Objects: counts[r.resource], LastListTime: timeOrNil(r.time),
		}
		ok, message := watching(r.resource)
		switch {
		case r.failure != "":
			report.State, report.Message = v1alpha1.WatchStateFailing, r.failure
		case message != "":
			report.State, report.Message = v1alpha1.WatchStateFailing, message
		case !ok || r.time.IsZero():
			report.State = v1alpha1.WatchStateListing
		}
		reports = append(reports, report)
	}
	return reports
}

func resourceType(t schema.GroupVersionResource) v1alpha1.ResourceType {
	return v1alpha1.ResourceType{Group: t.Group, Version: t.Version, Resource: t.Resource}
}
