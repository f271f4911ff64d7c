// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"context"
	"fmt"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// authorsInterval is how often a namespace is checked for authors that are not known yet.
const authorsInterval = 100 * time.Millisecond

// reconcile records the changes of a namespace and withdraws those that no longer differ. A partially recorded batch is
// completed first, because its records are not reflected in the EnvironmentDependencies yet.
func (d *Detector) reconcile(ctx context.Context, namespace string) (again time.Time, err error) {
	if d.awaitsAuthors(namespace) {
		return d.config.Clock.Now().Add(authorsInterval), nil
	}
	if d.attached.take(namespace) {
		d.config.Changed(d.config.Sources()[namespace]...)
	}
	wait, err := d.recordBatch(ctx, namespace)
	if wait > 0 {
		return d.config.Clock.Now().Add(wait), nil
	}
	if err == nil {
		err = d.withdrawUnchanged(ctx, namespace)
	}
	// After a failure, a batch that is due waits for the retry.
	if due, some := d.intake.Due(namespace, d.window()); some && (due > 0 || err == nil) {
		d.queue.AddAfter(namespace, due)
	}
	if err != nil && ctx.Err() == nil {
		failures.Inc()
		err = fmt.Errorf("record changes of dependencies in %s: %w", namespace, err)
	}
	return again, err
}

// awaitsAuthors reports whether changes of a namespace wait for their authors. Reading the objects now would include these
// changes and attribute them to others. The wait is bounded by AttributionMaxWait.
func (d *Detector) awaitsAuthors(namespace string) bool {
	if !d.authors.WaitingIn(namespace) {
		return false
	}
	due, some := d.intake.Due(namespace, d.window()+d.config.AttributionMaxWait)
	return !some || due > 0
}

// awaitsAudit returns how long a comparison waits for the authors of what it has found. No event may follow: a watch that
// starts lists what was changed a moment before. The wait ends when reports about a change before the batch have arrived,
// or are late.
func (d *Detector) awaitsAudit(batch pending.Batch, found []finding) time.Duration {
	limit := d.window() + attribution.LongestAuditWait(d.config.AttributionMaxWait) - d.config.Clock.Since(batch.FirstSeen)
	if !batch.Resync || limit <= 0 {
		return 0
	}
	reported := sets.New[index.Object]()
	for _, change := range batch.Changes {
		reported.Insert(toIndexObject(change.Object))
	}
	var wait time.Duration
	for _, f := range found {
		if !reported.Has(f.of) {
			wait = max(wait, d.authors.AuditWait(f.event()))
		}
	}
	return min(wait, limit)
}

// recordBatch records the oldest batch of a namespace if it is due. If the batch awaits authors, it returns for how long,
// and records nothing. After a second failure, the batch is done for the environments that succeeded, and a comparison of
// the whole namespace makes up for the others.
func (d *Detector) recordBatch(ctx context.Context, namespace string) (time.Duration, error) {
	if due, some := d.intake.Due(namespace, d.window()); !some || due > 0 {
		return 0, nil
	}
	batch, some, err := d.intake.Close(ctx, namespace)
	if err != nil || !some {
		return 0, err
	}
	found, err := d.reader.read(ctx, batch)
	if err != nil {
		return 0, err
	}
	if wait := d.awaitsAudit(batch, found); wait > 0 {
		return wait, nil
	}
	return 0, d.recordFound(ctx, batch, found)
}

// recordFound records what a batch has found, and completes the batch.
func (d *Detector) recordFound(ctx context.Context, batch pending.Batch, found []finding) error {
	failed := d.recorder.recordAll(ctx, batch, found)
	for _, f := range found {
		for _, copied := range d.config.Index.Lookup(f.of) {
			d.config.Changed(copied.Environment)
		}
	}
	if failed != nil {
		if ctx.Err() != nil || d.queue.NumRequeues(batch.Namespace) == 0 {
			return failed // The first failure may be temporary.
		}
		d.intake.Resync(batch.Namespace, pending.Missed)
	}
	err := d.intake.Done(ctx, batch)
	d.pendingVersions.forgetRecorded(batch.Namespace)
	return utilerrors.NewAggregate([]error{failed, err})
}

// withdrawUnchanged removes objects that no longer differ from open records.
func (d *Detector) withdrawUnchanged(ctx context.Context, namespace string) error {
	var errs []error
	for _, environment := range d.changedEnvironments.take(namespace) {
		if err := d.recorder.withdraw(ctx, environment); err != nil {
			d.changedEnvironments.add(namespace, environment)
			errs = append(errs, err)
		}
	}
	return utilerrors.NewAggregate(errs)
}

// window returns the batch window.
func (d *Detector) window() time.Duration { return d.config.Policy().BatchWindow.Duration }

// intakeCallbacks returns the callbacks of the intake.
func (d *Detector) intakeCallbacks(ctx context.Context) pending.Notices {
	logger := klog.FromContext(ctx)
	return pending.Notices{
		Opened: d.queue.Add,
		Filling: func(changes, capacity int) {
			logger.Info("Intake of dependency changes is filling up", "changes", changes, "capacity", capacity)
		},
		Overflowed: func(namespace string) {
			logger.Info("Intake of dependency changes overflowed, comparing the whole namespace", "namespace", namespace)
		},
		Blocked: func(error) {}, // The intake logs the error, retries, and has a metric.
	}
}
