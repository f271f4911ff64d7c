// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// reconcile brings the catalogs of a source namespace up to date: it resumes what was interrupted or has failed, records the
// pending changes, carries out requests, and writes the conditions of the catalogs.
func (c *catalogs) reconcile(ctx context.Context, namespace string) (again time.Time, err error) {
	err = c.reconcileNamespace(ctx, namespace)
	// A conflict is not a failure: another client has written the object first.
	if failure := utilerrors.FilterOut(err, apierrors.IsConflict); failure != nil && ctx.Err() == nil {
		countFailure(failure)
	}
	return time.Time{}, err
}

func (c *catalogs) reconcileNamespace(ctx context.Context, namespace string) error {
	following := c.following(namespace)
	if err := c.deleteRevisions(ctx, namespace); err != nil {
		return err
	}
	c.endPauses(namespace, following)
	permitted, unknown := c.permitted(ctx, namespace, following)
	able, err := c.resumeAll(ctx, namespace, permitted)
	errs := []error{unknown, err, c.keeper.nameLanded(ctx, namespace)}
	if c.unexplained(namespace, able) {
		c.queue.AddAfter(namespace, explainInterval)
	} else {
		able, err = c.recordBatch(ctx, namespace, able)
		errs = append(errs, err, c.answerAll(ctx, namespace, able))
	}
	for _, catalog := range following {
		errs = append(errs, c.keeper.report(ctx, catalog))
	}
	err = utilerrors.NewAggregate(errs)
	c.scheduleNext(namespace, following, err != nil)
	return err
}

// resumeAll goes on with what was interrupted or has failed. It returns the catalogs that can go on to what comes next.
func (c *catalogs) resumeAll(
	ctx context.Context, namespace string, following []*v1alpha1.AppCatalog,
) (able []*v1alpha1.AppCatalog, err error) {
	return each(following, func(catalog *v1alpha1.AppCatalog) error {
		var errs []error
		for _, record := range c.unfinished(catalog) {
			again, err := c.resume(ctx, catalog, record)
			if again > 0 {
				c.queue.AddAfter(namespace, again)
			}
			errs = append(errs, err)
		}
		return utilerrors.NewAggregate(errs)
	})
}

// recordBatch brings the catalogs of a namespace to what its oldest batch has found changed, if its time has come or
// somebody waits for what comes after it. It returns the catalogs that can go on to what comes next.
func (c *catalogs) recordBatch(
	ctx context.Context, namespace string, catalogs []*v1alpha1.AppCatalog,
) (able []*v1alpha1.AppCatalog, err error) {
	due, some := c.intake.Due(namespace, c.window())
	if !some || due > 0 && !c.anyAsked(catalogs) {
		return catalogs, nil
	}
	batch, some, err := c.intake.Close(ctx, namespace)
	if err != nil || !some {
		return nil, err
	}
	var failed error
	if len(catalogs) > 0 {
		seen, err := c.reader.changed(ctx, batch, wantedBy(catalogs))
		if err != nil {
			return nil, err
		}
		able, err = each(catalogs, func(catalog *v1alpha1.AppCatalog) error {
			return c.keeper.carryOut(ctx, catalog, occasionOf(batch), seen)
		})
		if err != nil && c.queue.NumRequeues(namespace) == 0 {
			return able, err // What fails for the first time may well pass.
		}
		failed = err
	}
	return able, utilerrors.NewAggregate([]error{failed, c.endBatch(ctx, batch, len(able))})
}

// endBatch ends a batch that some catalogs have been brought up to date with. The others do not keep the next batch from
// them: that one compares everything, and finds what they have missed.
func (c *catalogs) endBatch(ctx context.Context, batch pending.Batch, with int) error {
	if with < len(c.unhindered(batch.Namespace)) {
		c.intake.Resync(batch.Namespace, pending.Missed)
	}
	return c.intake.Done(ctx, batch)
}

// wantedBy says whether any of catalogs selects or holds an object of their source.
func wantedBy(following []*v1alpha1.AppCatalog) func(*unstructured.Unstructured) bool {
	var selections []capture.Selection
	held := sets.New[reference]()
	for _, catalog := range following {
		// What cannot be read selects nothing, and is reported when the catalog is brought up to date.
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

func (c *catalogs) anyAsked(following []*v1alpha1.AppCatalog) bool {
	now := c.shared.Clock.Now()
	return slices.ContainsFunc(following, func(catalog *v1alpha1.AppCatalog) bool { return asked(catalog, now) })
}

// answerAll does what people have asked for of the catalogs of a namespace.
func (c *catalogs) answerAll(ctx context.Context, namespace string, following []*v1alpha1.AppCatalog) error {
	if !c.anyAsked(following) {
		return nil
	}
	seen, err := c.reader.everything(ctx, namespace, wantedBy(following))
	if err != nil {
		return err
	}
	var errs []error
	for _, catalog := range following {
		for _, o := range occasionsOf(catalog, c.shared.Clock.Now()) {
			errs = append(errs, c.answer(ctx, catalog, o, seen))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// endPauses has the namespace compared when a pause is over that a catalog still tells of: what has changed meanwhile is
// recorded with the batch that comes next.
func (c *catalogs) endPauses(namespace string, following []*v1alpha1.AppCatalog) {
	for _, catalog := range following {
		paused := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionPaused)
		if paused != nil && paused.Reason == v1alpha1.ReasonPauseUntil && waits(&catalog.Spec, c.shared.Clock.Now()).ok() {
			c.intake.Resync(namespace, pending.Requested)
		}
	}
}

// scheduleNext has the namespace looked at again when its next batch is due, or a pause is over. After a failure, one that is
// due already waits as long as the namespace does.
func (c *catalogs) scheduleNext(namespace string, following []*v1alpha1.AppCatalog, failed bool) {
	if due, some := c.intake.Due(namespace, c.window()); some && (due > 0 || !failed) {
		c.queue.AddAfter(namespace, due)
	}
	for _, catalog := range following {
		if until := catalog.Spec.PauseUntil; until != nil && until.After(c.shared.Clock.Now()) {
			c.queue.AddAfter(namespace, until.Sub(c.shared.Clock.Now()))
		}
	}
}

// window is how long changes are gathered.
func (c *catalogs) window() time.Duration { return c.policy().BatchWindow.Duration }

// policy are the settings that all catalogs share.
func (c *catalogs) policy() *v1alpha1.SyncPolicySpec {
	return syncpolicy.Of(c.informers.Configbutler().V1alpha1().SyncPolicies().Lister())
}
