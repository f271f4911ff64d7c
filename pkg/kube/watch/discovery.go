// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
)

const (
	// discoveryTimeout bounds one round of discovery, which is two requests.
	discoveryTimeout = 30 * time.Second
	// debounce is how long further events are awaited before discovery runs: one installation makes many.
	debounce = 200 * time.Millisecond
	// syncInterval is how often WaitForSync checks.
	syncInterval = 100 * time.Millisecond
)

// errIncomplete is returned if discovery succeeded but left out types that are installed.
var errIncomplete = errors.New("discovery left out installed types")

// Discoverer returns the resource types that an API server serves. *discovery.DiscoveryClient implements it.
type Discoverer interface {
	// ServerGroupsAndResourcesWithContext may return some of the types together with an
	// *discovery.ErrGroupDiscoveryFailed that names the other groups.
	ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

var _ Discoverer = &discovery.DiscoveryClient{}

// Types discovers the resource types that the API server serves. It runs discovery when a CustomResourceDefinition or an APIService
// changes, every refresh interval, and after errors with a backoff of 1 to 60 seconds.
type Types struct {
	discoverer      Discoverer
	declarations    *declarations
	refreshInterval time.Duration

	wake      chan struct{}
	current   atomic.Pointer[Snapshot]
	listeners listeners[*Snapshot]
}

// NewTypes returns Types without a snapshot until Run has discovered one. refreshInterval, which must be positive, is how often
// discovery runs without an event.
func NewTypes(discoverer Discoverer, client metadata.Interface, refreshInterval time.Duration) (*Types, error) {
	t := &Types{discoverer: discoverer, refreshInterval: refreshInterval, wake: make(chan struct{}, 1)}
	var err error
	if t.declarations, err = newDeclarations(client, t.refreshSoon); err != nil {
		return nil, err
	}
	return t, nil
}

// Snapshot returns the types of the last discovery, nil before the first one has succeeded.
func (t *Types) Snapshot() *Snapshot {
	return t.current.Load()
}

// Subscribe calls changed with every new snapshot that differs from the one before, one at a time and in order, until cancel is
// called. changed must return quickly and must not call Subscribe or cancel. A snapshot that exists already is not reported.
func (t *Types) Subscribe(changed func(*Snapshot)) (cancel func()) {
	return t.listeners.add(changed)
}

// WaitForSync waits until the first discovery has succeeded, and returns false if ctx is done before.
func (t *Types) WaitForSync(ctx context.Context) bool {
	return wait.PollUntilContextCancel(ctx, syncInterval, true, func(context.Context) (bool, error) {
		return t.Snapshot() != nil, nil
	}) == nil
}

// refreshSoon requests a discovery without waiting for it. One discovery handles all requests made before it.
func (t *Types) refreshSoon() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Run keeps the discovery snapshot up to date until ctx ends.
func (t *Types) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { t.declarations.run(ctx) })

	backoff := errorBackoff()
	var failure error // that of the last discovery
	for ctx.Err() == nil {
		delay := t.refreshInterval
		err := t.refresh(ctx)
		if err != nil {
			delay = min(delay, backoff.Step())
			reportFailure(ctx, failure, err)
		} else {
			backoff = errorBackoff()
		}
		failure = err
		if snapshot := t.Snapshot(); snapshot != nil {
			if sooner := t.declarations.next(snapshot, time.Now()); sooner > 0 {
				delay = min(delay, sooner)
			}
		}
		t.pause(ctx, delay)
	}
}

// errorBackoff returns a backoff of 1 to 60 seconds, jitter included.
func errorBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 40 * time.Second}
}

// pause waits for the delay, or until discovery is requested and the debounce has passed.
func (t *Types) pause(ctx context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
		return
	case <-t.wake:
	}
	timer.Reset(debounce)
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	// The next discovery handles the requests made during the debounce.
	select {
	case <-t.wake:
	default:
	}
}

// refresh runs discovery once and publishes the snapshot if it differs. An error may concern only some groups.
func (t *Types) refresh(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	groups, lists, err := t.discoverer.ServerGroupsAndResourcesWithContext(bounded)
	failed, ok := failedGroupVersions(err)
	if !ok {
		return fmt.Errorf("discovering resource types: %w", err)
	}
	previous := t.Snapshot()
	next := merge(previous, servedTypes(groups, lists), failed, t.declared(lists))
	if !next.equal(previous) {
		t.current.Store(next)
		klog.FromContext(ctx).V(2).Info("Discovered resource types", "types", len(next.types), "failedGroupVersions", len(next.failed))
		t.listeners.notify(next)
	}
	switch {
	case err != nil:
		return fmt.Errorf("discovering resource types: %w", err)
	case len(next.failed) > 0:
		return fmt.Errorf("discovering resource types: %w: %v", errIncomplete, slices.Sorted(maps.Values(next.failed)))
	}
	return nil
}

// failedGroupVersions returns the group versions whose discovery failed; ok is false if discovery failed completely.
func failedGroupVersions(err error) (failed map[schema.GroupVersion]string, ok bool) {
	if err == nil {
		return nil, true
	}
	var partial *discovery.ErrGroupDiscoveryFailed
	if !errors.As(err, &partial) {
		return nil, false
	}
	failed = make(map[schema.GroupVersion]string, len(partial.Groups))
	for groupVersion, cause := range partial.Groups {
		failed[groupVersion] = cause.Error()
	}
	return failed, true
}

// declared returns a function that reports whether a type that discovery left out is still installed.
func (t *Types) declared(lists []*metav1.APIResourceList) func(Type) bool {
	return func(of Type) bool {
		served := slices.ContainsFunc(lists, func(list *metav1.APIResourceList) bool {
			return list.GroupVersion == of.Resource.GroupVersion().String()
		})
		return t.declarations.declares(of, served)
	}
}

// reportFailure counts every failure, and logs it if its message differs from the previous one.
func reportFailure(ctx context.Context, last, err error) {
	if ctx.Err() != nil {
		return
	}
	discoveryErrors.Inc()
	if last == nil || last.Error() != err.Error() {
		klog.FromContext(ctx).Error(err, "Failed to discover some resource types, keeping those of earlier discoveries")
	}
}
