// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// The metrics have no labels: there is no bound on how many branches, destinations and
// types there are. What is wrong with one of them is told by its record.
var (
	objectsScanned       = newCounter("objects_scanned_total", "Objects of the cluster that were compared with a branch.")
	objectsWritten       = newCounter("objects_written_total", "Files written for objects, in commits that remotes have accepted.")
	filesDeleted         = newCounter("files_deleted_total", "Files removed, in commits that remotes have accepted.")
	commits              = newCounter("commits_total", "Commits that remotes have accepted.")
	commitBytes          = newCounter("commit_bytes_total", "Size of the files in commits that remotes have accepted, in bytes, before compression.")
	commitBatches        = newCounter("commit_batches_total", "Pushes that remotes have accepted.")
	pushRetries          = newCounter("push_retries_total", "Times that a branch had to be tried again, because the remote failed or another writer was faster.")
	markerConflicts      = newCounter("marker_conflicts_total", "Markers of another owner that were found in destinations' folders.")
	ownershipConflicts   = newCounter("ownership_conflicts_total", "Times that a destination stopped writing because its folder has another owner.")
	leaseAcquireFailures = newCounter("lease_acquire_failures_total", "Times that the Lease of a branch could not be taken or renewed.")
	activeWorkers        = newGauge("repo_branch_active_workers", "Branches that are being read, compared or written.")
	queueDepth           = newGauge("repo_branch_queue_depth", "Changes of all branches that no remote has accepted yet.")
)

func newCounter(name, help string) *metrics.Counter {
	return metrics.NewCounter(&metrics.CounterOpts{Namespace: "slipstream", Name: name, Help: help, StabilityLevel: metrics.ALPHA})
}

func newGauge(name, help string) *metrics.Gauge {
	return metrics.NewGauge(&metrics.GaugeOpts{Namespace: "slipstream", Name: name, Help: help, StabilityLevel: metrics.ALPHA})
}

func init() {
	legacyregistry.MustRegister(
		objectsScanned, objectsWritten, filesDeleted, commits, commitBytes, commitBatches, pushRetries, markerConflicts, ownershipConflicts, leaseAcquireFailures, activeWorkers, queueDepth)
}
