// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// publishInterval is the least time between two reports about a destination.
const publishInterval = time.Second

func compareNames(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }

// publishRecords brings the GitDestinationStatuses and the conditions of GitDestinations
// up to date whenever something has changed, until ctx ends.
func (m *mirror) publishRecords(ctx context.Context) {
	written := map[types.UID]*v1alpha1.GitDestinationStatus{}
	for {
		select {
		case <-m.publish:
		case <-ctx.Done():
			return
		}
		current := map[types.UID]*v1alpha1.GitDestinationStatus{}
		for _, d := range m.allDestinations() {
			record, err := m.report(ctx, d, written[d.uid])
			if err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Destination cannot be reported about", "destination", d.key)
				signal(m.publish)
				continue
			}
			current[d.uid] = record
		}
		written = current
		select {
		case <-time.After(publishInterval):
		case <-ctx.Done():
			return
		}
	}
}

// report writes what has changed about one destination and returns its record.
func (m *mirror) report(ctx context.Context, d *destination, written *v1alpha1.GitDestinationStatus) (*v1alpha1.GitDestinationStatus, error) {
	p := d.plan.Load()
	record := newRecord(d, m.config.Identity.Instance, func(t schema.GroupVersionResource) (bool, string) { return m.watches.of(p, t) })
	if written == nil || !equality.Semantic.DeepEqual(record.Status, written.Status) {
		if err := m.config.Records.Write(ctx, record); err != nil {
			return nil, fmt.Errorf("write the GitDestinationStatus: %w", err)
		}
	}
	return record, m.writeDestinationStatus(ctx, d)
}

func (m *mirror) writeDestinationStatus(ctx context.Context, d *destination) error {
	object, err := m.informers.Configbutler().V1alpha1().GitDestinations().Lister().GitDestinations(d.key.Namespace).Get(d.key.Name)
	if err != nil || object.UID != d.uid {
		return nil // it is going
	}
	client := m.config.Slipstream.ConfigbutlerV1alpha1().GitDestinations(d.key.Namespace)
	return writeStatus(ctx, object, client.Get, client.UpdateStatus, func(object *v1alpha1.GitDestination) bool {
		before := object.Status
		object.Status.ObservedGeneration = d.plan.Load().object.Generation
		object.Status.Conditions = destinationConditions(d, object.Status.Conditions)
		return !equality.Semantic.DeepEqual(before, object.Status)
	})
}

// writeRuleStatuses brings the statuses of all rules up to date.
func (m *mirror) writeRuleStatuses(ctx context.Context, in inputs, p *plan) error {
	for _, rule := range in.rules {
		rp := p.rules[nameOf(rule)]
		v := m.ruleVerdict(rp, resolveReference(rule.Spec.DestinationRef, rule.Namespace))
		client := m.config.Slipstream.ConfigbutlerV1alpha1().WatchRules(rule.Namespace)
		if err := writeStatus(ctx, rule, client.Get, client.UpdateStatus, func(object *v1alpha1.WatchRule) bool {
			before := object.Status
			object.Status = ruleStatus(rp, v, rule.Generation, object.Status)
			return !equality.Semantic.DeepEqual(before, object.Status)
		}); err != nil {
			return fmt.Errorf("write the status of WatchRule %s: %w", nameOf(rule), err)
		}
	}
	for _, rule := range in.clusterRules {
		rp := p.clusterRules[rule.Name]
		v := m.ruleVerdict(rp, types.NamespacedName{Namespace: rule.Spec.DestinationRef.Namespace, Name: rule.Spec.DestinationRef.Name})
		client := m.config.Slipstream.ConfigbutlerV1alpha1().ClusterWatchRules()
		if err := writeStatus(ctx, rule, client.Get, client.UpdateStatus, func(object *v1alpha1.ClusterWatchRule) bool {
			before := object.Status
			object.Status = ruleStatus(rp, v, rule.Generation, object.Status)
			return !equality.Semantic.DeepEqual(before, object.Status)
		}); err != nil {
			return fmt.Errorf("write the status of ClusterWatchRule %s: %w", rule.Name, err)
		}
	}
	return nil
}

// ruleVerdict says whether everything that a rule selects is watched and compared.
func (m *mirror) ruleVerdict(r *rulePlan, name types.NamespacedName) verdict {
	m.mu.Lock()
	d := m.destinations[name]
	m.mu.Unlock()
	if v := r.selected(); !v.ok() || d == nil {
		return v
	}
	p := d.plan.Load()
	for _, t := range r.types {
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
	metav1.Object
	DeepCopy() T
}

// writeStatus applies change to the newest version of an object and writes its status if
// change says that something is new. An object that is gone, or has been made anew, is
// left alone.
func writeStatus[T statusObject[T]](
	ctx context.Context, object T, get func(context.Context, string, metav1.GetOptions) (T, error),
	update func(context.Context, T, metav1.UpdateOptions) (T, error), change func(T) bool,
) error {
	uid, latest := object.GetUID(), object.DeepCopy()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if !change(latest) {
			return nil
		}
		_, err := update(ctx, latest, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
		fresh, getErr := get(ctx, object.GetName(), metav1.GetOptions{})
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
