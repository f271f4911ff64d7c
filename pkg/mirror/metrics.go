// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"

	"k8s.io/component-base/metrics/legacyregistry"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/metrics"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// The labels have few values each. Branches, destinations and types are no labels, because their number is not bounded; the state of each
// is in its GitDestinationStatus.
var (
	eventsMapped  = metrics.NewCounter("mirror_events_mapped_total", "Changes received by watches that affect a destination.")
	eventsIgnored = metrics.NewCounterVec("mirror_events_ignored_total",
		"Changes received by watches that affect no destination, by reason: not_selected, unchanged or unrenderable.", "reason")
	objectsScanned = metrics.NewCounter("objects_scanned_total", "Objects of the cluster that were compared with a branch.")
	objectsWritten = metrics.NewCounter("objects_written_total", "Files written for objects, in commits that remotes have accepted.")
	filesDeleted   = metrics.NewCounter("files_deleted_total", "Files removed, in commits that remotes have accepted.")
	commits        = metrics.NewCounter("commits_total", "Commits that remotes have accepted.")
	commitBytes    = metrics.NewCounter("commit_bytes_total",
		"Size of the files in commits that remotes have accepted, in bytes, before compression.")
	commitBatches = metrics.NewCounter("commit_batches_total", "Pushes that remotes have accepted.")
	pushRetries   = metrics.NewCounterVec("push_retries_total",
		"Retries of a branch, by reason: the error of the remote, held (by another installation), or other.",
		"reason")
	rebaseRetries = metrics.NewCounter("rebase_retries_total", "Pushes whose commits were put on a new tip or built again because another writer pushed first.")
	pushSeconds   = metrics.NewHistogram("change_push_duration_seconds",
		"Time from the event of a change until the remote has accepted it.",
		[]float64{.05, .1, .2, .4, .8, 1.5, 3, 5, 10, 20, 30, 60, 120, 300, 900, 3600})
	markerConflicts    = metrics.NewCounter("marker_conflicts_total", "Markers of another owner found in folders of destinations.")
	ownershipConflicts = metrics.NewCounter("ownership_conflicts_total",
		"Destinations that stopped writing because their folder has another owner.")
	leaseAcquireFailures = metrics.NewCounter("lease_acquire_failures_total", "Failures to acquire or renew the Lease of a branch.")
	bypassed             = metrics.NewCounterVec("bypassed_changes_total",
		"Changes of mirrored objects by a person or another manager than the tool that manages the object, by tool: Flux, ArgoCD, Helm or Owner.",
		"tool")
	activeWorkers = metrics.NewGauge("repo_branch_active_workers", "Branches that are being read, compared or written.")
	queueDepth    = metrics.NewGauge("repo_branch_queue_depth", "Changes of all branches that no remote has accepted yet.")
	oldestChange  = metrics.NewGauge("repo_branch_oldest_change_timestamp_seconds",
		"Event time of the oldest change that no remote has accepted yet, of destinations that are not suspended, in seconds since 1970. "+
			"0 if there are none.")
	backlogOverflows = metrics.NewCounter("outbox_overflows_total",
		"Times that too many changes of a destination waited and were dropped, because a comparison with the cluster replaces them.")
	outboxBlocked     = metrics.NewGauge("outbox_blocked", "1 while changes cannot be written to the outbox, 0 otherwise.")
	destinationsGauge = metrics.NewGaugeVec("destinations",
		"GitDestinations, by the status of their condition Ready: True, False or Unknown.", "ready")
)

func init() {
	legacyregistry.MustRegister(eventsMapped, eventsIgnored,
		objectsScanned, objectsWritten, filesDeleted, commits, commitBytes, commitBatches, pushRetries, rebaseRetries, pushSeconds,
		markerConflicts, ownershipConflicts, leaseAcquireFailures, bypassed,
		activeWorkers, queueDepth, oldestChange, backlogOverflows, outboxBlocked, destinationsGauge)
	// Counters are initialized with 0, so that the first increment is visible as an increase.
	for _, reason := range []string{notSelected, unchanged, unrenderable} {
		eventsIgnored.WithLabelValues(reason)
	}
	for _, reason := range remoteReasons {
		pushRetries.WithLabelValues(reason)
	}
	for _, tool := range []v1alpha1.ManagingTool{
		v1alpha1.ManagedByFlux, v1alpha1.ManagedByArgoCD, v1alpha1.ManagedByHelm, v1alpha1.ManagedByOwner,
	} {
		bypassed.WithLabelValues(string(tool))
	}
	pushRetries.WithLabelValues(retryHeld)
	pushRetries.WithLabelValues(retryOther)
}

// The reasons for ignored events.
const (
	notSelected = "not_selected"
	unchanged   = "unchanged"
	// unrenderable is for objects that cannot be written as files.
	unrenderable = "unrenderable"
)

// The reasons for retries that are not errors of the remote.
const (
	retryHeld  = "held"
	retryOther = "other"
)

// remoteReasons are the reasons for retries by the kind of the remote's error.
var remoteReasons = map[gitrepo.Kind]string{
	gitrepo.Unreachable: "unreachable", gitrepo.Unauthorized: "unauthorized", gitrepo.NotFound: "not_found",
	gitrepo.Rejected: "rejected", gitrepo.Protocol: "protocol", gitrepo.Invalid: "invalid",
	gitrepo.TooLarge: "too_large",
}

// countRetry counts a retry of a branch by its error.
func countRetry(err error) {
	var git *gitrepo.Error
	var held leaseHeldError
	switch {
	case errors.Is(err, gitrepo.ErrMoved):
		rebaseRetries.Inc()
	case errors.As(err, &held):
		pushRetries.WithLabelValues(retryHeld).Inc()
	case errors.As(err, &git) && remoteReasons[git.Kind] != "":
		pushRetries.WithLabelValues(remoteReasons[git.Kind]).Inc()
	default:
		pushRetries.WithLabelValues(retryOther).Inc()
	}
}

// oneIf returns the value of a boolean gauge.
func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
