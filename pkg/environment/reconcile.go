// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// reconcile brings an environment one step further to what its spec and its requests ask for. again is when it has to be reconciled
// even if nothing changes before.
func (c *environments) reconcile(ctx context.Context, name types.NamespacedName) (again time.Time, err error) {
	defer func() {
		if err != nil {
			c.starter.leaveQueue(name) // An environment that cannot start must not delay those behind it.
			err = fmt.Errorf("reconcile Environment %s: %w", name, err)
		}
	}()
	s, err := c.reader.read(ctx, name)
	switch {
	case err != nil:
		return again, err
	case s == nil:
		c.forget(name)
		return again, nil
	}
	r := &reconciliation{c, s}
	if s.environment.DeletionTimestamp != nil {
		return r.remove(ctx)
	}
	return r.proceed(ctx)
}

// reconciliation is one reconcile of an environment. Each of its writes is idempotent.
type reconciliation struct {
	environments *environments
	state        *state
}

// records returns the writer of the environment's records.
func (r *reconciliation) records() *recordWriter {
	c := r.environments
	return &recordWriter{
		state: r.state, api: c.api, store: c.records, events: c.events, detector: c.detector, sources: c.sources,
	}
}

// proceed reconciles an environment that is not being deleted, in the order of the package comment.
func (r *reconciliation) proceed(ctx context.Context) (again time.Time, err error) {
	if over, err := r.expire(ctx); over || err != nil {
		return again, err
	}
	if err := r.claim(ctx); err != nil {
		return again, err
	}
	before := r.state.environment.DeepCopy()
	if found := r.state.catalog; found != nil && before.Status.CatalogUID == "" {
		r.state.environment.Status.CatalogUID = found.UID
	}
	ended := r.state.status().recordCompleted()
	// conclude removes finished requests, which say whether a record is about some workloads only.
	whole := slices.DeleteFunc(slices.Clone(ended), r.state.requests().isPartial)
	consent, err := r.checkConsent(ctx)
	if err != nil {
		return again, err
	}
	r.state.offer = r.currentOffer()
	again = earliest(earliest(consent, r.checkRights(ctx)), expiryOf(r.state.environment))
	if err := r.records().update(ctx); err != nil {
		return again, err
	}
	next := r.enqueueStart(r.state.schedule().next())
	if err := r.conclude(ctx, before, next); err != nil {
		if next.record != nil {
			r.environments.starter.undo(nameOf(r.state.environment))
		}
		return again, err
	}
	r.measureSource(ctx, &before.Status, whole)
	for _, record := range ended {
		r.environments.events.ended(r.state.environment, record)
	}
	if r.state.requestErr != nil {
		klog.FromContext(ctx).Error(r.state.requestErr, "Failed to carry out a request, retrying", "environment", nameOf(r.state.environment))
		again = earliest(again, r.state.now.Add(requestRetryDelay))
	}
	return earliest(again, next.again), nil
}

// requestRetryDelay is the delay before a failed rediscover request is retried.
const requestRetryDelay = 30 * time.Second

// conclude writes the status, and starts the chosen sync, if there is one.
func (r *reconciliation) conclude(ctx context.Context, before *v1alpha1.Environment, next choice) (err error) {
	var records []*v1alpha1.SyncStatus
	if next.record != nil {
		if records, err = r.records().ready(ctx, next.record); err != nil {
			return err
		}
	}
	var catalog types.UID
	if next.record != nil {
		catalog = r.state.chooseCatalog(records[0])
	}
	r.state.status().describe(records)
	r.report(next.held, next.record)
	if err := r.writeStatus(ctx, before); err != nil {
		return err
	}
	if next.record != nil {
		job := newJob(r.state.environment, records)
		job.Request.Catalog, job.Request.Related = catalog, r.environments.caches.relatedTo
		r.environments.starter.begin(ctx, job)
	}
	return nil
}

// currentOffer returns what a sync would change. It returns nil while a sync is in progress or nothing can be synced.
func (r *reconciliation) currentOffer() *offer {
	if r.state.syncing || !r.state.obstacle.IsZero() {
		return nil
	}
	e, name := r.state.environment, nameOf(r.state.environment)
	request := newOfferRequest(e, r.state.catalog, r.state.notCopied)
	request.sync.Related = r.environments.caches.relatedTo
	request.runs, request.source = r.environments.starter.runs.count(e.UID), r.environments.sources.count(name)
	request.target = r.environments.caches.hasTarget(e)
	if count, _ := r.workloads(); count != nil {
		request.there = count.Total
	}
	return r.environments.offers.of(name, request)
}

// enqueueStart delays the chosen sync if the limits on starts and concurrent syncs require it.
func (r *reconciliation) enqueueStart(next choice) choice {
	name := nameOf(r.state.environment)
	if next.record == nil {
		r.environments.starter.leaveQueue(name)
		return next
	}
	most := int(*r.state.policy.MaxSyncsPerMinute)
	ok, again := r.environments.starter.starts.tryStart(name, next.record.Status.DetectedAt.Time, most)
	if ok {
		return next
	}
	// The message does not contain the position: every write of the status triggers another reconcile, with another position.
	return choice{again: earliest(next.again, again), held: conditions.Reason{Code: v1alpha1.ReasonRateLimited,
		Message: fmt.Sprintf("others are before it in the queue; of all syncs, at most %d begin in a minute and %d run at the same time",
			most, maxRuns)}}
}

// writeStatus writes the status if it has changed. It returns a Conflict if the environment has changed since it was read.
func (r *reconciliation) writeStatus(ctx context.Context, before *v1alpha1.Environment) error {
	if equality.Semantic.DeepEqual(before.Status, r.state.environment.Status) {
		return nil
	}
	written, err := r.environments.api.Environments(before.Namespace).UpdateStatus(ctx, r.state.environment, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("write its status: %w", err)
	}
	r.state.environment = written
	r.environments.events.conditions.Announce(written, before.Status.Conditions, written.Status.Conditions)
	r.environments.events.prompted(before, written, r.state.records.named(written.Status.LatestDependencySync))
	return nil
}

// forget drops the state of a deleted environment.
func (c *environments) forget(name types.NamespacedName) {
	c.offers.forget(name)
	c.sources.forget(name)
	c.runner.Index.Set(name, nil)
	c.starter.leaveQueue(name)
	// A sync is only in progress here if another client has removed the finalizer.
	c.starter.runs.cancel(name)
}
