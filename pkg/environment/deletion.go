// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/condition"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	syncstatussummary "github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Finalizer keeps an environment until the objects that it wrote are handled according to its deletionPolicy.
const Finalizer = "configbutler.ai/environment"

const (
	// minRemovePause and maxRemovePause bound the interval between two checks of a deletion. The interval grows with the duration of the
	// deletion, because each check lists all objects of the environment.
	minRemovePause, maxRemovePause = 2 * time.Second, time.Minute
	// removeShare divides the duration of the deletion to get the interval.
	removeShare = 8
)

// removePause returns the interval until the next check of a deletion that began at a time.
func removePause(since, now time.Time) time.Duration {
	return min(max(now.Sub(since)/removeShare, minRemovePause), maxRemovePause)
}

// claim adds the finalizer. Nothing is written to the target before that.
func (r *reconciliation) claim(ctx context.Context) error {
	if slices.Contains(r.state.environment.Finalizers, Finalizer) {
		return nil
	}
	claimed := r.state.environment.DeepCopy()
	claimed.Finalizers = append(claimed.Finalizers, Finalizer)
	written, err := r.environments.api.Environments(claimed.Namespace).Update(ctx, claimed, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("put the finalizer: %w", err)
	}
	r.state.environment = written
	return nil
}

// expire deletes the environment if its ttl has expired, and reports whether it has.
func (r *reconciliation) expire(ctx context.Context) (over bool, err error) {
	at := expiry(r.state.environment)
	if at == nil || at.After(r.state.now) {
		return false, nil
	}
	e := r.state.environment
	err = r.environments.api.Environments(e.Namespace).Delete(ctx, e.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &e.UID}})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return true, fmt.Errorf("delete it because its time is over: %w", err)
	}
	r.environments.events.recorder.Event(e, corev1.EventTypeNormal, v1alpha1.ReasonExpired,
		fmt.Sprintf("The environment is deleted: its spec.ttl of %s is over", e.Spec.TTL.Duration))
	return true, nil
}

// remove deletes what the environment wrote according to its deletionPolicy, and then removes the finalizer.
func (r *reconciliation) remove(ctx context.Context) (again time.Time, err error) {
	name := nameOf(r.state.environment)
	r.environments.starter.leaveQueue(name)
	switch {
	case !slices.Contains(r.state.environment.Finalizers, Finalizer):
		return again, nil
	case r.state.syncing:
		r.environments.starter.runs.cancel(name)
		return again, r.reportDeletion(ctx)
	}
	if err := r.reportDeletion(ctx); err != nil {
		return again, err
	}
	if err := r.records().close(ctx); err != nil {
		return again, err
	}
	custom, err := r.customKinds(ctx)
	if err != nil {
		return again, err
	}
	left, err := r.environments.remover.Remove(ctx, r.state.environment, custom...)
	if err != nil {
		return again, errors.Join(err, r.reportLeft(ctx, []string{"the last attempt failed and is retried: " + describeFailure(err)}))
	}
	if len(left) > 0 {
		return r.state.now.Add(removePause(r.state.environment.DeletionTimestamp.Time, r.state.now)), r.reportLeft(ctx, left)
	}
	if err := r.environments.copies.Forget(ctx, r.state.environment.UID); err != nil {
		return again, err
	}
	r.environments.runner.Index.Set(name, nil)
	r.environments.starter.runs.forget(r.state.environment.UID)
	released := r.state.environment.DeepCopy()
	released.Finalizers = slices.DeleteFunc(released.Finalizers, func(f string) bool { return f == Finalizer })
	if _, err := r.environments.api.Environments(name.Namespace).Update(ctx, released, metav1.UpdateOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		return again, fmt.Errorf("take the finalizer out: %w", err)
	}
	return again, nil
}

// customKinds returns the kinds of custom resources that the environment may have written, including those of an interrupted sync.
func (r *reconciliation) customKinds(ctx context.Context) ([]schema.GroupKind, error) {
	applied, _, err := r.environments.copies.List(ctx, r.state.environment.UID)
	if err != nil {
		return nil, err
	}
	kinds := sets.New[schema.GroupKind]()
	for _, object := range applied {
		kinds.Insert(plan.KeyOf(object).GroupKind)
	}
	for _, object := range r.state.environment.Spec.Include {
		kinds.Insert(plan.KeyOfIncluded(object).GroupKind)
	}
	return slices.DeleteFunc(kinds.UnsortedList(), func(kind schema.GroupKind) bool { return !plan.IsOnlyIncluded(kind) }), nil
}

// reportDeletion sets the status of a deleted environment once: setting the deletionTimestamp does not change the status.
func (r *reconciliation) reportDeletion(ctx context.Context) error {
	if r.state.environment.Status.State == syncstatussummary.Environment(r.state.environment) {
		return nil
	}
	return r.reportLeft(ctx, nil)
}

// describeFailure describes why objects cannot be removed. It omits the addresses of a connection: the local port differs each time, and
// every change of the status triggers another reconcile at once.
func describeFailure(err error) string {
	var network *net.OpError
	if errors.As(err, &network) {
		return fmt.Sprintf("the API server of the cluster cannot be reached: %v", network.Err)
	}
	return err.Error()
}

// reportLeft writes to the status which objects remain, or why they cannot be removed.
func (r *reconciliation) reportLeft(ctx context.Context, left []string) error {
	before := r.state.environment.DeepCopy()
	condition.Set(r.state.environment, condition.Facts{Remaining: left}, r.state.now)
	return r.writeStatus(ctx, before)
}
