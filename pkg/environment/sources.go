// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// sourceChanges counts the detected source changes of each environment. After each change the offer is computed again.
type sourceChanges struct {
	mu    sync.Mutex
	times map[types.NamespacedName]int
}

func newSourceChanges() *sourceChanges { return &sourceChanges{times: map[types.NamespacedName]int{}} }

func (s *sourceChanges) add(environments ...types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range environments {
		s.times[name]++
	}
}

func (s *sourceChanges) count(environment types.NamespacedName) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times[environment]
}

// forget drops the counter of a deleted environment.
func (s *sourceChanges) forget(environment types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.times, environment)
}

// sourceChanged enqueues environments whose source has changed.
func (c *environments) sourceChanged(environments ...types.NamespacedName) {
	c.sources.add(environments...)
	for _, name := range environments {
		c.queue.Add(name)
	}
}

// followSources notifies the detector when the set of source namespaces changes.
func (f *follower) followSources() cache.ResourceEventHandler {
	var mu sync.Mutex
	var before []string
	check := func(any) {
		mu.Lock()
		defer mu.Unlock()
		if now := slices.Sorted(maps.Keys(f.caches.bySourceNamespace())); !slices.Equal(now, before) {
			before = now
			f.detector.SourcesChanged()
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(added any, initial bool) {
			if !initial { // The detector starts after the caches have synced.
				check(added)
			}
		},
		UpdateFunc: func(before, after any) {
			if changesSources(before, after) {
				check(after)
			}
		},
		DeleteFunc: check,
	}
}

// changesSources reports whether a change of an Environment or an AppCatalog can change the set of source namespaces.
func changesSources(before, after any) bool {
	switch is := after.(type) {
	case *v1alpha1.Environment:
		was, ok := before.(*v1alpha1.Environment)
		return !ok || was.UID != is.UID || was.Spec.CatalogRef != is.Spec.CatalogRef ||
			(was.Status.AppliedRevision > 0) != (is.Status.AppliedRevision > 0)
	case *v1alpha1.AppCatalog:
		was, ok := before.(*v1alpha1.AppCatalog)
		return !ok || was.UID != is.UID || was.Spec.SourceNamespace != is.Spec.SourceNamespace
	}
	return true
}
