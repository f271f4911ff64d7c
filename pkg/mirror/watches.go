// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
)

// watchStates has the state of each watch. Its lock is taken while others are held, so nothing is called under it.
type watchStates struct {
	mu     sync.Mutex
	states map[kubewatch.Watch]watchState
}

// watchState is the state of one watch.
type watchState struct {
	// listed is set once the watch has synced.
	listed  bool
	failure string
}

func newWatchStates() *watchStates {
	return &watchStates{states: map[kubewatch.Watch]watchState{}}
}

func (s *watchStates) update(watch kubewatch.Watch, change func(*watchState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.states[watch]
	change(&state)
	s.states[watch] = state
}

// retain drops the states of all watches but those given.
func (s *watchStates) retain(running []kubewatch.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := make(map[kubewatch.Watch]watchState, len(running))
	for _, watch := range running {
		if state, ok := s.states[watch]; ok {
			kept[watch] = state
		}
	}
	s.states = kept
}

// running reports whether every watch that a destination needs for a type has synced.
func (s *watchStates) running(p *destinationPlan, t schema.GroupVersionResource) bool {
	ok, _ := s.of(p, t)
	return ok
}

// starting reports whether a watch that a destination needs for a type has not synced yet, and none has failed.
func (s *watchStates) starting(p *destinationPlan, t schema.GroupVersionResource) bool {
	ok, failure := s.of(p, t)
	return !ok && failure == ""
}

// of returns the state of the watches that a destination needs for a type: whether all have synced, and the failure of the
// first that fails.
func (s *watchStates) of(p *destinationPlan, t schema.GroupVersionResource) (ok bool, failure string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ok = true
	for _, needed := range p.selection.watches(t) {
		// A covering watch is of the same namespace or of all namespaces.
		covering := []kubewatch.Watch{needed, {Resource: t}}
		ok = ok && slices.ContainsFunc(covering, func(w kubewatch.Watch) bool { return s.states[w].listed })
		for _, w := range covering {
			failure = cmp.Or(failure, s.states[w].failure)
		}
	}
	return ok, failure
}
