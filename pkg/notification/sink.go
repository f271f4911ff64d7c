// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/notification/condition"
	"github.com/configbutler/slipstream/pkg/notification/ledger"
)

// sink is a running sink. Only reconciles change it, one at a time.
type sink struct {
	name   types.NamespacedName
	uid    types.UID
	queue  *queue
	ledger *ledger.Ledger
	status *status
	// generation is that of the spec in use, and author the user on whose behalf it sends.
	generation int64
	author     *v1alpha1.AutomatedBy
	// version is that of the spec; nil until the sink can send.
	version atomic.Pointer[version]
	// missedChange is set if a Change could not be collected, because it is unknown whether the user may see it.
	missedChange atomic.Bool
	// checked is the generation for which permissions were checked last, checkedAt when, and lost those that were missing.
	checked   int64
	checkedAt time.Time
	lost      string
	written   time.Time

	cancel context.CancelFunc
	group  wait.Group
	once   sync.Once
}

// stop stops the worker. A message that is being sent is sent again later.
func (k *sink) stop() {
	k.once.Do(func() {
		k.cancel()
		k.group.Wait()
	})
}

// reconcile runs a sink as its spec says, and writes its status.
func (s *sinks) reconcile(ctx context.Context, name types.NamespacedName) (again time.Time, err error) {
	object, err := s.read(ctx, name)
	if err != nil {
		return again, err
	}
	k, err := s.ensureRunning(ctx, name, object)
	if err != nil || k == nil {
		return again, err
	}
	unusable := s.apply(k, object)
	unknown := s.updateHold(ctx, k, object, unusable)
	if k.missedChange.Swap(false) {
		s.wakeChanges()
	}
	again, err = s.writeStatus(ctx, k, object)
	return again, utilerrors.NewAggregate([]error{unknown, err})
}

// read reads a sink from the API, because the cache may lack the last write of the status. It returns nil if there is none.
func (s *sinks) read(ctx context.Context, name types.NamespacedName) (*v1alpha1.NotificationSink, error) {
	found, err := s.shared.Client.ConfigbutlerV1alpha1().NotificationSinks(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read it: %w", err)
	}
	return found, nil
}

// ensureRunning returns the running sink of an object, which is nil if the object does not exist. It removes the running sink of a deleted
// object with the same name first.
func (s *sinks) ensureRunning(ctx context.Context, name types.NamespacedName, object *v1alpha1.NotificationSink) (*sink, error) {
	s.mu.Lock()
	k := s.running[name]
	s.mu.Unlock()
	if k != nil && (object == nil || object.UID != k.uid) {
		k.stop()
		if err := ledger.Drop(ctx, s.rows, k.uid); err != nil {
			return nil, err //nolint:wrapcheck // it says what it deletes
		}
		s.mu.Lock()
		delete(s.running, name)
		s.mu.Unlock()
		numbersOf(name).forget()
		k = nil
	}
	if k != nil || object == nil {
		return k, nil
	}
	return s.open(ctx, name, object)
}

// open opens the ledger of a sink and starts its worker, which sends nothing before apply.
func (s *sinks) open(ctx context.Context, name types.NamespacedName, object *v1alpha1.NotificationSink) (*sink, error) {
	rows, contents, err := ledger.Open(ctx, s.rows, object.UID)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what it reads
	}
	k := &sink{
		name: name, uid: object.UID, ledger: rows, queue: newQueue(object.UID, contents, s.shared.Clock.Now),
		status: newStatus(&object.Status),
	}
	worker := &worker{
		queue: k.queue, ledger: rows, clock: s.shared.Clock, status: k.status, numbers: numbersOf(name),
		reminders: func() v1alpha1.Reminders { return s.policy().Reminders },
		changed:   func() { s.queue.AddAfter(name, statusInterval) },
		current:   k.version.Load,
	}
	worker.numbers.begin()
	// When the term ends, all workers stop at once.
	running, cancel := context.WithCancel(ctx)
	k.cancel = cancel
	k.group.StartWithContext(klog.NewContext(running, klog.LoggerWithValues(klog.FromContext(ctx), "sink", name)), worker.run)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[name] = k
	return k, nil
}

// apply applies a new generation of the spec, or another author: what is collected and sent from now on. Objects are observed again. Until the
// permissions for it are checked, nothing is sent.
func (s *sinks) apply(k *sink, object *v1alpha1.NotificationSink) error {
	if k.generation == object.Generation && k.version.Load() != nil && equality.Semantic.DeepEqual(k.author, object.Status.EditedBy) {
		return nil
	}
	k.status.setHold(conditions.Progressing("The permissions for the spec are being checked"))
	selected, err := newSelection(object, s.config.Namespace)
	if err != nil {
		return err
	}
	receiver, err := s.config.Connect(object)
	if err != nil {
		return fmt.Errorf("use the receiver: %w", err)
	}
	k.generation, k.author = object.Generation, object.Status.EditedBy
	k.queue.configure(selected)
	k.version.Store(&version{sinks: s, sink: object, selection: selected, receiver: receiver})
	k.status.tryNow()
	s.observeAll(selected)
	s.observeKnown(k)
	s.wakeChanges()
	return nil
}

// updateHold determines why a sink sends nothing, if it must not. unusable is why its spec cannot be used, nil if it can.
func (s *sinks) updateHold(ctx context.Context, k *sink, object *v1alpha1.NotificationSink, unusable error) error {
	held, err := hold{Code: v1alpha1.ReasonSpecInvalid}, error(nil)
	if unusable != nil {
		held.Message = unusable.Error()
	} else {
		held, err = s.holdReason(ctx, k, object)
	}
	if k.status.setHold(held) {
		k.queue.signal()
		s.wakeChanges()
	}
	return err
}

// holdReason returns why a sink must send nothing. It returns an error if that could not be determined.
func (s *sinks) holdReason(ctx context.Context, k *sink, object *v1alpha1.NotificationSink) (hold, error) {
	switch {
	case object.DeletionTimestamp != nil:
		return conditions.Progressing("The sink is being deleted"), nil
	case object.Spec.Suspend:
		return hold{Code: v1alpha1.ReasonSuspended, Message: "spec.suspend is set: nothing is collected or sent"}, nil
	case s.policy().Suspend.Notifications:
		return hold{
			Code:    v1alpha1.ReasonNotificationsSuspended,
			Message: "SyncPolicy " + v1alpha1.SyncPolicyName + " suspends notifications: they are collected and sent later",
		}, nil
	}
	return s.checkPermissions(ctx, k, object)
}

// checkPermissions checks the permissions of the user on whose behalf a sink sends. If the check fails, the last result for the same generation
// stays valid for as long as a granted permission is cached.
func (s *sinks) checkPermissions(ctx context.Context, k *sink, object *v1alpha1.NotificationSink) (hold, error) {
	who, now := access.Notifying(object), s.shared.Clock.Now()
	lost, err := s.shared.Access.Check(ctx, who, access.OfNotificationSink(object, s.config.Namespace))
	switch {
	case err == nil:
		k.checked, k.checkedAt, k.lost = object.Generation, now, lost
	case k.checked != object.Generation || now.Sub(k.checkedAt) > access.AllowedTTL:
		return conditions.Progressing(fmt.Sprintf("The permissions of %s are being checked", who)),
			fmt.Errorf("check the permissions of %s: %w", who, err)
	default:
		klog.FromContext(ctx).Error(err, "Failed to check the permissions of a NotificationSink, retrying", "retryAfter", access.DeniedTTL)
	}
	if k.lost != "" {
		return hold{Code: v1alpha1.ReasonPermissionLost, Message: k.lost}, nil
	}
	return hold{}, nil
}

// writeStatus writes the status if it has changed and the last write is long enough ago. It returns when the sink is to be reconciled again.
func (s *sinks) writeStatus(ctx context.Context, k *sink, object *v1alpha1.NotificationSink) (time.Time, error) {
	now := s.shared.Clock.Now()
	again := now.Add(access.DeniedTTL)
	after := object.DeepCopy()
	s.updateStatus(k, after, now)
	if equality.Semantic.DeepEqual(object.Status, after.Status) {
		return again, nil
	}
	if early := k.written.Add(statusInterval); early.After(now) {
		return early, nil
	}
	_, err := s.shared.Client.ConfigbutlerV1alpha1().NotificationSinks(object.Namespace).UpdateStatus(ctx, after, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return again, nil // The deletion will be observed.
	}
	if err != nil {
		return again, fmt.Errorf("write its status: %w", err)
	}
	k.written = now
	s.events.Announce(after, object.Status.Conditions, after.Status.Conditions)
	return again, nil
}

// updateStatus updates the status of a sink.
func (s *sinks) updateStatus(k *sink, object *v1alpha1.NotificationSink, now time.Time) {
	current, progress := k.status.current(), k.queue.progress()
	state, written := &progress.state, &object.Status
	written.ObservedGeneration = object.Generation
	written.Pending = int64(progress.pending)
	written.Messages, written.Notifications, written.Rejected = state.Messages, state.Notifications, state.Rejected
	written.LastMessage, written.LastDeliveryTime = state.Title, timeOrNil(state.Delivered)
	written.Failures, written.LastError = int32(current.failures), condition.Cut(current.message)
	written.NextAttemptTime = nil
	if progress.pending > 0 && current.held.IsZero() {
		written.NextAttemptTime = timeOrNil(current.due)
	}
	facts := condition.Facts{Held: current.held, Failure: current.failure, Reason: current.reason, Rejected: current.rejected}
	if progress.pending > 0 {
		facts.Window = k.queue.windowMessage(now)
	}
	condition.Set(object, facts, now)
	numbersOf(k.name).set(progress.pending, current.failures)
}

func timeOrNil(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	out := metav1.NewTime(at).Rfc3339Copy()
	return &out
}
