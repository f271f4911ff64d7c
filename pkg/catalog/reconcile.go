// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// state is the progress of one reconcile of a source namespace.
type state struct {
	namespace string
	// catalogs are those that follow the namespace.
	catalogs []*v1alpha1.AppCatalog
	// ready are the catalogs that no earlier step prevents from continuing with the next step.
	ready []*v1alpha1.AppCatalog
	errs  []error
	// wait is how long the namespace waits for authors, 0 if it does not.
	wait time.Duration
}

// reconcile updates the catalogs of a source namespace: it resumes interrupted and failed records, records the changes of the source,
// processes edits and requests, and writes the conditions of the catalogs.
func (r *reconciler) reconcile(ctx context.Context, namespace string) (again time.Time, err error) {
	err = r.proceed(ctx, &state{namespace: namespace, catalogs: r.lister.catalogs(namespace)})
	// A conflict is not a failure: another client has written the object first.
	if failure := utilerrors.FilterOut(err, apierrors.IsConflict); failure != nil && ctx.Err() == nil {
		countFailure(failure)
	}
	return time.Time{}, err
}

// proceed runs the steps of a reconcile. A failure of one catalog does not stop the others.
func (r *reconciler) proceed(ctx context.Context, s *state) error {
	if err := r.garbage.collect(ctx, s.namespace); err != nil {
		return err
	}
	r.endPauses(s)
	r.checkPermissions(ctx, s)
	r.resumeRecords(ctx, s)
	s.add(r.updater.addPushedCommits(ctx, s.namespace))
	if r.awaitsAuthors(s) {
		s.wait = authorsInterval
	} else {
		r.recordBatch(ctx, s)
	}
	if s.wait == 0 {
		r.processPending(ctx, s)
	}
	for _, catalog := range s.catalogs {
		s.add(r.updater.report(ctx, catalog))
	}
	err := utilerrors.NewAggregate(s.errs)
	if s.wait > 0 {
		r.queue.AddAfter(s.namespace, s.wait)
	} else {
		r.scheduleBatch(s.namespace, err != nil)
	}
	r.schedulePauses(s)
	return err
}

// add adds an error, if it is not nil.
func (s *state) add(err error) { s.errs = append(s.errs, err) }

// forEach calls do for each ready catalog. Those for which it fails are no longer ready.
func (s *state) forEach(do func(*v1alpha1.AppCatalog) error) error {
	var succeeded []*v1alpha1.AppCatalog
	var errs []error
	for _, catalog := range s.ready {
		err := do(catalog)
		if err == nil {
			succeeded = append(succeeded, catalog)
		}
		errs = append(errs, err)
	}
	s.ready = succeeded
	return utilerrors.NewAggregate(errs)
}

// hasPending reports whether a ready catalog has unprocessed edits or sync requests.
func (s *state) hasPending(now time.Time) bool {
	return slices.ContainsFunc(s.ready, func(catalog *v1alpha1.AppCatalog) bool { return hasPending(catalog, now) })
}

// endPauses requests a comparison of the namespace if a pause has ended that the status of a catalog still reports. The changes that were
// made during the pause are recorded with the next batch.
func (r *reconciler) endPauses(s *state) {
	for _, catalog := range s.catalogs {
		paused := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionPaused)
		if paused != nil && paused.Reason == v1alpha1.ReasonPauseUntil && pausedBy(&catalog.Spec, r.shared.Clock.Now()).IsZero() {
			r.intake.Resync(s.namespace, pending.Requested)
		}
	}
}

// resumeRecords resumes the records that were interrupted or have failed.
func (r *reconciler) resumeRecords(ctx context.Context, s *state) {
	s.add(s.forEach(func(catalog *v1alpha1.AppCatalog) error {
		var errs []error
		for _, record := range r.unfinished(catalog) {
			again, err := r.resume(ctx, catalog, record)
			if again > 0 {
				r.queue.AddAfter(s.namespace, again)
			}
			errs = append(errs, err)
		}
		return utilerrors.NewAggregate(errs)
	}))
}

// recordBatch records the oldest batch of the namespace in the ready catalogs, if it is due or must be recorded before pending edits and
// requests.
func (r *reconciler) recordBatch(ctx context.Context, s *state) {
	due, exists := r.intake.Due(s.namespace, r.lister.batchWindow())
	if !exists || due > 0 && !s.hasPending(r.shared.Clock.Now()) {
		return
	}
	batch, exists, err := r.intake.Close(ctx, s.namespace)
	if err != nil || !exists {
		s.ready = nil
		s.add(err)
		return
	}
	if len(s.ready) > 0 {
		source, err := r.reader.readBatch(ctx, batch, followedBy(s.ready))
		if err != nil {
			s.ready = nil
			s.add(err)
			return
		}
		err = s.forEach(func(catalog *v1alpha1.AppCatalog) error {
			err := r.updater.update(ctx, catalog, batchTrigger(batch), source)
			if pending := (*auditPendingError)(nil); errors.As(err, &pending) {
				s.wait, err = max(s.wait, pending.wait), nil
			}
			return err
		})
		s.add(err)
		if s.wait > 0 {
			return // The batch is repeated for all catalogs. Those that have recorded it do nothing then.
		}
		if err != nil && r.queue.NumRequeues(s.namespace) == 0 {
			return // The whole batch is retried once, because the first failure is often transient.
		}
	}
	s.add(r.completeBatch(ctx, batch, len(s.ready)))
}

// completeBatch completes a batch that has been recorded in a number of catalogs. If the others have missed it, the next batch is a
// comparison that finds the missed changes, so the catalogs that succeeded need not wait for them.
func (r *reconciler) completeBatch(ctx context.Context, batch pending.Batch, recorded int) error {
	if recorded < r.countPermitted(batch.Namespace) {
		r.intake.Resync(batch.Namespace, pending.Missed)
	}
	return r.intake.Done(ctx, batch)
}

// processPending processes the edits and requests of the ready catalogs.
func (r *reconciler) processPending(ctx context.Context, s *state) {
	if !s.hasPending(r.shared.Clock.Now()) {
		return
	}
	source, err := r.reader.readAll(ctx, s.namespace, followedBy(s.ready))
	if err != nil {
		s.add(err)
		return
	}
	for _, catalog := range s.ready {
		for _, t := range pendingTriggers(catalog, r.shared.Clock.Now()) {
			s.add(r.process(ctx, catalog, t, source))
		}
	}
}

// scheduleBatch enqueues a namespace for when its next batch is due. After a failure, a batch that is already due waits for the backoff of
// the namespace.
func (r *reconciler) scheduleBatch(namespace string, failed bool) {
	if due, exists := r.intake.Due(namespace, r.lister.batchWindow()); exists && (due > 0 || !failed) {
		r.queue.AddAfter(namespace, due)
	}
}

// schedulePauses enqueues the namespace for the end of pauses.
func (r *reconciler) schedulePauses(s *state) {
	for _, catalog := range s.catalogs {
		if until := catalog.Spec.PauseUntil; until != nil && until.After(r.shared.Clock.Now()) {
			r.queue.AddAfter(s.namespace, until.Sub(r.shared.Clock.Now()))
		}
	}
}

// followedBy returns a function that reports whether one of the catalogs selects or holds an object of their source.
func followedBy(catalogs []*v1alpha1.AppCatalog) func(*unstructured.Unstructured) bool {
	var selections []capture.Selection
	held := sets.New[reference]()
	for _, catalog := range catalogs {
		// An invalid selection selects nothing. The error is reported when the catalog is updated.
		if selection, err := capture.NewSelection(&catalog.Spec); err == nil {
			selections = append(selections, selection)
		}
		for _, entry := range catalog.Status.Workloads {
			held.Insert(reference{Kind: entry.Kind, Name: entry.Name})
		}
	}
	return func(object *unstructured.Unstructured) bool {
		workload, _ := capture.ReferenceTo(object)
		return held.Has(workload) ||
			slices.ContainsFunc(selections, func(s capture.Selection) bool { return s.Selects(object) })
	}
}
