// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/controller/events"
)

const (
	// publishInterval is the minimum time between two updates of statuses.
	publishInterval = time.Second
	// A failed update is retried after publishRetryMin, doubling up to publishRetryMax.
	publishRetryMin = 2 * time.Second
	publishRetryMax = time.Minute
)

func compareNames(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

// publisher writes the GitDestinationStatuses, and the statuses of destinations and rules.
type publisher struct {
	mirror *mirror
	// written has the records as they were last written, by the UID of their destination.
	written map[types.UID]v1alpha1.GitDestinationRecord
}

// publishUntil updates the statuses after every signal on publish, until ctx ends.
func (m *mirror) publishUntil(ctx context.Context) {
	p := &publisher{mirror: m, written: map[types.UID]v1alpha1.GitDestinationRecord{}}
	backoff := wait.Backoff{Duration: publishRetryMin, Factor: 2, Jitter: 0.1, Steps: 30, Cap: publishRetryMax}
	retry := backoff
	defer queueDepth.Set(0)
	for {
		var again <-chan time.Time
		if err := p.update(ctx); err != nil && ctx.Err() == nil {
			delay := retry.Step()
			klog.FromContext(ctx).Error(err, "Failed to update statuses", "retryAfter", delay.Round(time.Millisecond))
			again = time.After(delay)
		} else {
			retry = backoff
		}
		select {
		case <-time.After(publishInterval):
		case <-ctx.Done():
			return
		}
		select {
		case <-m.publish:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// update writes the statuses that have changed. An error of one does not prevent the others from being written.
func (p *publisher) update(ctx context.Context) error {
	var errs []error
	destinations, pending := p.mirror.allDestinations(), 0
	for _, d := range destinations {
		pending += d.queue.Backlog().Rows
		if err := p.writeDestination(ctx, d); err != nil {
			errs = append(errs, fmt.Errorf("GitDestination %s: %w", d.key, err))
		}
	}
	queueDepth.Set(float64(pending))
	maps.DeleteFunc(p.written, func(uid types.UID, _ v1alpha1.GitDestinationRecord) bool {
		return !slices.ContainsFunc(destinations, func(d *destination) bool { return d.uid == uid })
	})
	if now := p.mirror.inForce.Load(); now != nil {
		errs = append(errs, p.writeRuleStatuses(ctx, now)...)
	}
	return errors.Join(errs...)
}

// writeDestination writes the record and the status of one destination. The record is written first, because the status drops the sync
// requests that are completed according to the record.
func (p *publisher) writeDestination(ctx context.Context, d *destination) error {
	m, plan := p.mirror, d.plan.Load()
	failure := m.failure(d)
	record := newRecord(d, failure, m.depth(plan.branch), func(t schema.GroupVersionResource) (bool, string) { return m.watches.of(plan, t) })
	if written, ok := p.written[d.uid]; !ok || !equality.Semantic.DeepEqual(record.Status, written) {
		err := m.shared.Records.Write(ctx, record)
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
			return nil // Its namespace is being deleted.
		}
		if err != nil {
			return fmt.Errorf("write the GitDestinationStatus: %w", err)
		}
		p.written[d.uid] = record.Status
	}
	return p.writeDestinationStatus(ctx, d, failure, record.Status.Syncs)
}

// depth returns the number of pending changes of all destinations of a branch.
func (m *mirror) depth(key branchKey) (rows int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w, ok := m.workers[key]; ok {
		for _, d := range w.all() {
			rows += d.queue.Backlog().Rows
		}
	}
	return rows
}

// failure returns the error that blocks a destination; nil if there is none.
func (m *mirror) failure(d *destination) error {
	if blocked := m.blocked.Load(); blocked != nil && *blocked != nil {
		return *blocked
	}
	return d.record.current().failure
}

// writeDestinationStatus writes the conditions, and drops the sync requests that are completed according to the written record.
func (p *publisher) writeDestinationStatus(ctx context.Context, d *destination, failure error, recorded []v1alpha1.SyncProgress) error {
	m := p.mirror
	object, err := m.informers.Configbutler().V1alpha1().GitDestinations().Lister().GitDestinations(d.key.Namespace).Get(d.key.Name)
	if err != nil || object.UID != d.uid {
		return nil //nolint:nilerr // It has been deleted.
	}
	reports := m.router.authors.reports(time.Now())
	client := m.shared.Client.ConfigbutlerV1alpha1().GitDestinations(d.key.Namespace)
	return writeStatus(ctx, m.announcer, client, object, conditionsOfDestination, func(object *v1alpha1.GitDestination) bool {
		before := object.Status
		object.Status.ObservedGeneration = d.plan.Load().object.Generation
		object.Status.Conditions = destinationConditions(d, failure, reports, object.Status.Conditions)
		object.Status.PendingSyncs = withoutDone(object.Status.PendingSyncs, recorded)
		return !equality.Semantic.DeepEqual(before, object.Status)
	})
}

// writeRuleStatuses writes the statuses of all rules of a plan.
func (p *publisher) writeRuleStatuses(ctx context.Context, now *plan) (errs []error) {
	m := p.mirror
	api, lists := m.shared.Client.ConfigbutlerV1alpha1(), m.informers.Configbutler().V1alpha1()
	for key, rp := range now.rules {
		rule, err := lists.WatchRules().Lister().WatchRules(key.Namespace).Get(key.Name)
		if err != nil || rule.UID != rp.uid {
			continue // It has been deleted.
		}
		problem, destination := m.ruleProblem(rp)
		client := api.WatchRules(key.Namespace)
		err = writeStatus(ctx, m.announcer, client, rule, conditionsOfWatchRule, func(object *v1alpha1.WatchRule) bool {
			return updateRuleStatus(rp, problem, destination, &object.Status)
		})
		errs = append(errs, wrap(fmt.Sprintf("write the status of WatchRule %s", key), err))
	}
	for name, rp := range now.clusterRules {
		rule, err := lists.ClusterWatchRules().Lister().Get(name)
		if err != nil || rule.UID != rp.uid {
			continue // It has been deleted.
		}
		problem, destination := m.ruleProblem(rp)
		client := api.ClusterWatchRules()
		err = writeStatus(ctx, m.announcer, client, rule, conditionsOfClusterWatchRule, func(object *v1alpha1.ClusterWatchRule) bool {
			return updateRuleStatus(rp, problem, destination, &object.Status)
		})
		errs = append(errs, wrap(fmt.Sprintf("write the status of ClusterWatchRule %s", name), err))
	}
	return errs
}

// ruleProblem returns why something that a rule selects and its destination mirrors is not watched or compared and, for a rule in force,
// why changes are not written to the folder of its destination.
func (m *mirror) ruleProblem(r *rulePlan) (problem, destination conditions.Reason) {
	m.mu.Lock()
	d := m.destinations[r.destination]
	m.mu.Unlock()
	if problem := r.selectionProblem(); !problem.IsZero() || d == nil {
		return problem, conditions.Reason{}
	}
	p := d.plan.Load()
	return m.watchProblem(r, d, p), p.writeProblem(m.failure(d))
}

// watchProblem returns why something that a rule selects and its destination mirrors is not watched or compared.
func (m *mirror) watchProblem(r *rulePlan, d *destination, p *destinationPlan) conditions.Reason {
	for _, t := range r.types {
		if !p.takes(t.Resource) {
			continue
		}
		ok, failure := m.watches.of(p, t.Resource)
		switch {
		case failure != "":
			return conditions.Reason{Code: v1alpha1.ReasonWatchFailed, Message: failure}
		case !ok:
			return conditions.Progressing(fmt.Sprintf("%s is being watched for the first time", t.Resource.GroupResource()))
		case !d.seeds.compared(t.Resource):
			return conditions.Progressing(fmt.Sprintf("%s is being compared with the folder", t.Resource.GroupResource()))
		}
	}
	return conditions.Reason{}
}

// statusObject is an object whose status is written.
type statusObject[T any] interface {
	events.Object
	DeepCopy() T
}

// statusClient writes the statuses of a kind.
type statusClient[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	UpdateStatus(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
}

// writeStatus applies change to the newest version of an object. If change reports a difference, it writes the status and records Events
// of the changed conditions. It does nothing if the object has been deleted, or replaced by another with the same name.
func writeStatus[T statusObject[T]](
	ctx context.Context, a *events.Announcer, client statusClient[T], object T, conditionsOf func(T) []metav1.Condition, change func(T) bool,
) error {
	uid, latest := object.GetUID(), object.DeepCopy()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before := conditionsOf(latest.DeepCopy())
		if !change(latest) {
			return nil
		}
		_, err := client.UpdateStatus(ctx, latest, metav1.UpdateOptions{})
		if err == nil {
			a.Announce(latest, before, conditionsOf(latest))
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		fresh, getErr := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		if getErr != nil {
			return getErr
		}
		if fresh.GetUID() != uid {
			return nil
		}
		latest = fresh
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
