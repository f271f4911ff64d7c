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
	"github.com/configbutler/slipstream/pkg/controller/events"
)

const (
	// publishInterval is the least time between two rounds of reports.
	publishInterval = time.Second
	// A round of which a part failed is followed by another after publishRetryMin,
	// doubling up to publishRetryMax.
	publishRetryMin = 2 * time.Second
	publishRetryMax = time.Minute
)

func compareNames(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

// publisher keeps the GitDestinationStatuses and the statuses of destinations and rules.
type publisher struct {
	*mirror
	// written are the records as they were last written.
	written map[types.UID]v1alpha1.GitDestinationRecord
}

// publishUntil brings what is reported up to date whenever something has changed, until
// ctx ends.
func (m *mirror) publishUntil(ctx context.Context) {
	p := &publisher{mirror: m, written: map[types.UID]v1alpha1.GitDestinationRecord{}}
	backoff := wait.Backoff{Duration: publishRetryMin, Factor: 2, Jitter: 0.1, Steps: 30, Cap: publishRetryMax}
	retry := backoff
	defer queueDepth.Set(0)
	for {
		var again <-chan time.Time
		if err := p.round(ctx); err != nil && ctx.Err() == nil {
			delay := retry.Step()
			klog.FromContext(ctx).Error(err, "Reports could not all be written", "retryAfter", delay.Round(time.Millisecond))
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

// round writes what is new. What cannot be written keeps nothing else from being.
func (p *publisher) round(ctx context.Context) error {
	var errs []error
	destinations, waiting := p.allDestinations(), 0
	for _, d := range destinations {
		waiting += d.queue.Backlog().Rows
		if err := p.report(ctx, d); err != nil {
			errs = append(errs, fmt.Errorf("GitDestination %s: %w", d.key, err))
		}
	}
	queueDepth.Set(float64(waiting))
	maps.DeleteFunc(p.written, func(uid types.UID, _ v1alpha1.GitDestinationRecord) bool {
		return !slices.ContainsFunc(destinations, func(d *destination) bool { return d.uid == uid })
	})
	if now := p.inForce.Load(); now != nil {
		errs = append(errs, p.writeRuleStatuses(ctx, now)...)
	}
	return errors.Join(errs...)
}

// report writes what has changed about one destination.
func (p *publisher) report(ctx context.Context, d *destination) error {
	plan, failure := d.plan.Load(), p.failure(d)
	record := newRecord(d, failure, p.depth(plan.branch), func(t schema.GroupVersionResource) (bool, string) { return p.watches.of(plan, t) })
	if written, ok := p.written[d.uid]; !ok || !equality.Semantic.DeepEqual(record.Status, written) {
		err := p.shared.Records.Write(ctx, record)
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
			return nil // its namespace is going
		}
		if err != nil {
			return fmt.Errorf("write the GitDestinationStatus: %w", err)
		}
		p.written[d.uid] = record.Status
	}
	return p.writeDestinationStatus(ctx, d, failure, record.Status.Syncs)
}

// depth is how many changes wait for a branch, of all destinations on it.
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

// failure is what keeps a destination back; nil if nothing does.
func (m *mirror) failure(d *destination) error {
	if blocked := m.blocked.Load(); blocked != nil && *blocked != nil {
		return *blocked
	}
	return d.record.current().failure
}

// writeDestinationStatus writes the conditions, and drops the requests of which the record
// tells that they have been carried out.
func (p *publisher) writeDestinationStatus(ctx context.Context, d *destination, failure error, told []v1alpha1.SyncProgress) error {
	object, err := p.informers.Configbutler().V1alpha1().GitDestinations().Lister().GitDestinations(d.key.Namespace).Get(d.key.Name)
	if err != nil || object.UID != d.uid {
		return nil //nolint:nilerr // it is going
	}
	reports := p.router.authors.reports(time.Now())
	client := p.shared.Client.ConfigbutlerV1alpha1().GitDestinations(d.key.Namespace)
	return writeStatus(ctx, p.announcer, client, object, conditionsOfDestination, func(object *v1alpha1.GitDestination) bool {
		before := object.Status
		object.Status.ObservedGeneration = d.plan.Load().object.Generation
		object.Status.Conditions = destinationConditions(d, failure, reports, object.Status.Conditions)
		object.Status.PendingSyncs = withoutDone(object.Status.PendingSyncs, told)
		return !equality.Semantic.DeepEqual(before, object.Status)
	})
}

// writeRuleStatuses brings the statuses of all rules up to date.
func (p *publisher) writeRuleStatuses(ctx context.Context, now *plan) (errs []error) {
	api, lists := p.shared.Client.ConfigbutlerV1alpha1(), p.informers.Configbutler().V1alpha1()
	for key, rp := range now.rules {
		rule, err := lists.WatchRules().Lister().WatchRules(key.Namespace).Get(key.Name)
		if err != nil || rule.UID != rp.uid {
			continue // it is going
		}
		v, destination := p.ruleVerdict(rp)
		client := api.WatchRules(key.Namespace)
		err = writeStatus(ctx, p.announcer, client, rule, conditionsOfWatchRule, func(object *v1alpha1.WatchRule) bool {
			return ruleStatus(rp, v, destination, &object.Status)
		})
		errs = append(errs, wrap(fmt.Sprintf("write the status of WatchRule %s", key), err))
	}
	for name, rp := range now.clusterRules {
		rule, err := lists.ClusterWatchRules().Lister().Get(name)
		if err != nil || rule.UID != rp.uid {
			continue // it is going
		}
		v, destination := p.ruleVerdict(rp)
		client := api.ClusterWatchRules()
		err = writeStatus(ctx, p.announcer, client, rule, conditionsOfClusterWatchRule, func(object *v1alpha1.ClusterWatchRule) bool {
			return ruleStatus(rp, v, destination, &object.Status)
		})
		errs = append(errs, wrap(fmt.Sprintf("write the status of ClusterWatchRule %s", name), err))
	}
	return errs
}

// ruleVerdict says whether everything that a rule selects, and its destination takes, is
// watched and compared; and, of a rule in force, whether changes reach the folder of its destination.
func (m *mirror) ruleVerdict(r *rulePlan) (v, destination verdict) {
	m.mu.Lock()
	d := m.destinations[r.destination]
	m.mu.Unlock()
	if v := r.selected(); !v.ok() || d == nil {
		return v, verdict{}
	}
	p := d.plan.Load()
	return m.watched(r, d, p), p.writable(m.failure(d))
}

// watched says whether everything that a rule selects, and its destination takes, is watched and compared.
func (m *mirror) watched(r *rulePlan, d *destination, p *destinationPlan) verdict {
	for _, t := range r.types {
		if !p.takes(t.Resource) {
			continue
		}
		ok, failure := m.watches.of(p, t.Resource)
		switch {
		case failure != "":
			return verdict{v1alpha1.ReasonWatchFailed, failure}
		case !ok:
			return progressing(fmt.Sprintf("%s is being watched for the first time", t.Resource.GroupResource()))
		case !d.seeds.compared(t.Resource):
			return progressing(fmt.Sprintf("%s is being compared with the folder", t.Resource.GroupResource()))
		}
	}
	return verdict{}
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

// writeStatus applies change to the newest version of an object and writes its status if
// change says that something is new, of which Events tell as well. An object that is gone,
// or has been made anew, is left alone.
func writeStatus[T statusObject[T]](
	ctx context.Context, a *events.Announcer, client statusClient[T], object T, conditions func(T) []metav1.Condition, change func(T) bool,
) error {
	uid, latest := object.GetUID(), object.DeepCopy()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before := conditions(latest.DeepCopy())
		if !change(latest) {
			return nil
		}
		_, err := client.UpdateStatus(ctx, latest, metav1.UpdateOptions{})
		if err == nil {
			a.Announce(latest, before, conditions(latest))
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
