// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/ledger"
	"github.com/configbutler/slipstream/pkg/notification/observe"
)

const (
	// changesRetry is the time between two attempts to read Changes.
	changesRetry = time.Second
	// changesPage is how many Changes are listed at a time.
	changesPage = 500
)

// errWatchEnded is returned when a watch of Changes ends, as each does after a while.
var errWatchEnded = errors.New("the watch has ended")

// wakeChanges has the collection of Changes begin again where the sinks need it.
func (s *sinks) wakeChanges() {
	select {
	case s.changesNeeded <- struct{}{}:
	default:
	}
}

// collectChanges collects Changes for the sinks that need them until ctx ends. Each sink continues where its ledger ends.
func (s *sinks) collectChanges(ctx context.Context) {
	for ctx.Err() == nil {
		delay, err := s.collectOnce(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errWatchEnded) {
			klog.FromContext(ctx).Error(err, "Failed to read Changes for notifications, retrying", "retryAfter", changesRetry)
		}
		if !delay {
			continue
		}
		timer := s.shared.Clock.NewTimer(changesRetry)
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-s.changesNeeded:
		}
		timer.Stop()
	}
}

// collectOnce collects Changes until the watch ends or the sinks change. It reports whether to wait before the next call.
func (s *sinks) collectOnce(ctx context.Context) (delay bool, err error) {
	sinks, from := s.collecting()
	if len(sinks) == 0 {
		select {
		case <-ctx.Done():
		case <-s.changesNeeded:
		}
		return false, nil
	}
	if from == 0 {
		err := s.beginChanges(ctx)
		return err != nil, err
	}
	err = s.watchChanges(ctx, sinks, from)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		err = s.listChanges(ctx, sinks)
	}
	return err != nil, err
}

// collecting returns the sinks that need Changes, and the resourceVersion after which: the earliest of all; 0 if one needs them from now on. What
// a sink may not read is collected once it may.
func (s *sinks) collecting() (sinks []*sink, from uint64) {
	for _, k := range s.current() {
		at, ok := k.queue.changePosition()
		if !ok || k.isHeldByPermission() || k.missedChange.Load() {
			continue
		}
		if len(sinks) == 0 || at < from {
			from = at
		}
		sinks = append(sinks, k)
	}
	return sinks, from
}

// isHeldByPermission reports whether the sink waits for permissions.
func (k *sink) isHeldByPermission() bool {
	held := k.status.hold().Code
	return held == v1alpha1.ReasonPermissionLost || held == v1alpha1.ReasonProgressing
}

// beginChanges has the sinks that need Changes from now on begin at the current resourceVersion.
func (s *sinks) beginChanges(ctx context.Context) error {
	list, err := s.shared.Client.ConfigbutlerV1alpha1().Changes("").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("list Changes: %w", err)
	}
	for _, k := range s.current() {
		if at, ok := k.queue.changePosition(); ok && at == 0 {
			k.queue.advance(parseVersion(list.ResourceVersion))
		}
	}
	return nil
}

// watchChanges collects the Changes after a resourceVersion for sinks until the watch ends or the sinks change.
func (s *sinks) watchChanges(ctx context.Context, collecting []*sink, from uint64) error {
	events, err := s.shared.Client.ConfigbutlerV1alpha1().Changes("").Watch(ctx, metav1.ListOptions{
		ResourceVersion: fmt.Sprint(from), AllowWatchBookmarks: true,
	})
	if err != nil {
		return fmt.Errorf("watch Changes: %w", err)
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the caller expects it
		case <-s.changesNeeded:
			return nil
		case event, open := <-events.ResultChan():
			if !open {
				return errWatchEnded
			}
			// A sink that misses a Change continues before it, with the next watch.
			collecting = slices.DeleteFunc(collecting, func(k *sink) bool {
				at, ok := k.queue.changePosition()
				return !ok || at == 0 || k.isHeldByPermission() || k.missedChange.Load()
			})
			if err := s.collectEvent(ctx, event, collecting); err != nil {
				return err
			}
		}
	}
}

// collectEvent collects the Change of an event. One that was modified has another commit, and was collected when it was added.
func (s *sinks) collectEvent(ctx context.Context, event watch.Event, collecting []*sink) error {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	change, ok := event.Object.(*v1alpha1.Change)
	if !ok {
		return fmt.Errorf("the watch of Changes sent a %T", event.Object)
	}
	version := parseVersion(change.ResourceVersion)
	for _, k := range collecting {
		if event.Type == watch.Bookmark {
			k.queue.advance(version)
		} else {
			k.queue.reach(version)
		}
	}
	if event.Type != watch.Added {
		return nil
	}
	s.collectChange(ctx, change, collecting, func(k *sink, c collectedChange) { k.queue.addChange(c) })
	return nil
}

// collectChange has the sinks that select a Change, and whose users may see it, collect it with add, unless they have. It returns the sinks for
// which that is unknown.
func (s *sinks) collectChange(
	ctx context.Context, change *v1alpha1.Change, collecting []*sink, add func(*sink, collectedChange),
) (missed []*sink) {
	n := observe.Change(change)
	destinations := s.destinationsOf(change)
	of := typeOf(&change.Spec.Object)
	for _, k := range collecting {
		if k.queue.hasCollected(change) || !k.queue.selectsChange(change, &n, destinations) {
			continue
		}
		may, err := s.maySee(ctx, k.version.Load().sink, of.Group, of.Resource, change.Spec.Object.Namespace)
		switch {
		case err != nil:
			s.missChange(ctx, k, err)
			missed = append(missed, k)
		case may:
			add(k, newCollectedChange(change, n))
		}
	}
	return missed
}

// missChange has a sink continue before a Change of which it is unknown whether the user may see it. The other sinks collect it.
func (s *sinks) missChange(ctx context.Context, k *sink, err error) {
	if ctx.Err() != nil {
		return
	}
	klog.FromContext(ctx).Error(err, "Failed to check who may see a Change, retrying", "sink", k.name, "retryAfter", access.DeniedTTL)
	k.missedChange.Store(true)
	s.queue.AddAfter(k.name, access.DeniedTTL)
}

// listChanges collects the Changes after the positions of sinks from a list, because the server no longer has the events. A Change that got
// another commit since then is among them, and is notified again with the same ID.
func (s *sinks) listChanges(ctx context.Context, collecting []*sink) error {
	options, last := metav1.ListOptions{Limit: changesPage}, uint64(0)
	collected := map[*sink]*ledger.Digest{}
	for _, k := range collecting {
		collected[k] = &ledger.Digest{}
	}
	add := func(k *sink, c collectedChange) { collected[k].Add(c.entry, c.entry.Notification.Time) }
	for {
		list, err := s.shared.Client.ConfigbutlerV1alpha1().Changes("").List(ctx, options)
		if err != nil {
			return fmt.Errorf("list Changes: %w", err)
		}
		last = max(last, parseVersion(list.ResourceVersion))
		for i := range list.Items {
			missed := s.collectChange(ctx, &list.Items[i], collecting, add)
			collecting = slices.DeleteFunc(collecting, func(k *sink) bool { return slices.Contains(missed, k) })
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	for _, k := range collecting {
		k.queue.addListed(collected[k], last)
	}
	return nil
}

// destinationsOf returns the labels of the GitDestinations that mirror the object of a Change.
func (s *sinks) destinationsOf(change *v1alpha1.Change) []labels.Set {
	var found []labels.Set
	lister := s.informers.Configbutler().V1alpha1().GitDestinations().Lister()
	for _, commit := range change.Spec.Commits {
		if d, err := lister.GitDestinations(commit.DestinationRef.Namespace).Get(commit.DestinationRef.Name); err == nil {
			found = append(found, d.Labels)
		}
	}
	return found
}
