// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// A type that could not be listed is retried after seedRetry, doubling up to seedRetryMax.
const (
	seedRetry    = time.Second
	seedRetryMax = time.Minute
	// seedPatience is how long comparisons wait for the watches of newly selected types, so that the comparisons of several
	// types share commits. Usually the watches start within a second.
	seedPatience = 10 * time.Second
	// seedNamespaces is how many namespaces of a type are compared alone before the type is compared completely. That takes about as
	// many requests, or fewer, and what is remembered of each namespace can be forgotten.
	seedNamespaces = 1000
)

// seeds schedules the comparisons of one destination with the cluster, and records their results.
type seeds struct {
	mu    sync.Mutex
	types map[schema.GroupVersionResource]*seedState
	// early is how far the scopes of types that are not selected were compared: by an earlier process, or by a comparison whose type
	// was deselected meanwhile.
	early map[watch.Watch][]position
	// sweep is set if the files of types that are no longer selected must be removed.
	sweep bool
	// unknown is set if a sweep kept files because discovery failed for their types.
	unknown bool
	// runs are the sync requests, pending and completed, oldest first.
	runs []*syncRun
	// heldUntil is until when due comparisons wait for watches that are starting; zero if they do not.
	heldUntil time.Time
}

type seedState struct {
	// fingerprint is that of the selection of the last or next comparison.
	fingerprint string
	// whole requests the comparison of all objects, namespaces those of some namespaces.
	whole      bool
	namespaces map[string]bool
	// alone is how many namespaces were compared alone since the last complete comparison.
	alone     int
	notBefore time.Time
	delay     time.Duration
	// selected is when the type was first selected.
	selected time.Time
	// comparing is set while a comparison is running.
	comparing bool
	// listed are the lists with which each scope was compared: the last complete one, and later ones that were pushed in part.
	listed  map[watch.Watch][]position
	time    time.Time
	failure string
	// runs are the sync requests that wait for a comparison.
	runs []*syncRun
}

func (s *seedState) needed() bool { return s.whole || len(s.namespaces) > 0 }

// seed is one comparison to run.
type seed struct {
	resource schema.GroupVersionResource
	// namespaces limits it; empty is everything selected.
	namespaces []string
	// runs are the requests that wait for it.
	runs []*syncRun
}

// newSeeds returns seeds with a pending sweep, for types whose selection ended while no process was running.
func newSeeds() *seeds {
	return &seeds{types: map[schema.GroupVersionResource]*seedState{}, early: map[watch.Watch][]position{}, sweep: true}
}

// selectTypes sets the selected types, with the fingerprints of their selections, and requests the comparisons that are necessary.
// It reports whether there is something to do.
func (s *seeds) selectTypes(fingerprints map[schema.GroupVersionResource]string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.unknown
	s.sweep, s.unknown = s.sweep || s.unknown, false
	for t, fingerprint := range fingerprints {
		state, ok := s.types[t]
		if !ok {
			state = &seedState{listed: s.takeEarly(t), selected: time.Now()}
			s.types[t] = state
		}
		if !ok || state.fingerprint != fingerprint {
			state.fingerprint, state.whole, state.notBefore = fingerprint, true, time.Time{}
			changed = true
		}
	}
	for t := range s.types {
		if _, ok := fingerprints[t]; !ok {
			s.types[t].deselected(t)
			delete(s.types, t)
			s.sweep, changed = true, true
		}
	}
	return changed
}

// takeEarly returns and forgets what early has of a type. The caller holds mu.
func (s *seeds) takeEarly(t schema.GroupVersionResource) map[watch.Watch][]position {
	listed := map[watch.Watch][]position{}
	maps.DeleteFunc(s.early, func(w watch.Watch, at []position) bool {
		if w.Resource == t {
			listed[w] = at
		}
		return w.Resource == t
	})
	return listed
}

// deselected fails the sync requests of a type that is no longer selected.
func (s *seedState) deselected(t schema.GroupVersionResource) {
	for _, run := range s.runs {
		run.compared(t, found{}, errNoLongerSelected)
	}
}

var errNoLongerSelected = errors.New("no rule selects it any more")

// invalidate requests the comparison of one type, if it is selected.
func (s *seeds) invalidate(t schema.GroupVersionResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state, ok := s.types[t]; ok {
		state.whole, state.notBefore = true, time.Time{}
	}
}

// invalidateNamespace requests the comparison of one type in one namespace.
func (s *seeds) invalidateNamespace(t schema.GroupVersionResource, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state, ok := s.types[t]; ok && !state.whole {
		state.request([]string{namespace})
	}
}

// invalidateAll requests the comparison of everything, because the branch has changed.
func (s *seeds) invalidateAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep = true
	for _, state := range s.types {
		state.whole = true
	}
}

// take returns the next due comparison whose watches are running, so that no change between the list and the watch is lost.
// While watches of newly selected types are starting it returns none, for at most seedPatience. The caller must call
// succeeded, failed or putBack.
func (s *seeds) take(running, starting func(schema.GroupVersionResource) bool) (seed, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []schema.GroupVersionResource
	now := time.Now()
	s.heldUntil = time.Time{}
	for t, state := range s.types {
		switch {
		case !state.needed() || state.awaitsRead() || now.Before(state.notBefore):
		case running(t):
			due = append(due, t)
		case now.Before(state.selected.Add(seedPatience)) && starting(t):
			s.heldUntil = earliest(s.heldUntil, state.selected.Add(seedPatience))
		}
	}
	if !s.heldUntil.IsZero() {
		return seed{}, false
	}
	if len(due) == 0 {
		return seed{}, false
	}
	next := seed{resource: slices.MinFunc(due, compareResources)}
	state := s.types[next.resource]
	if !state.whole {
		next.namespaces = slices.Sorted(maps.Keys(state.namespaces))
	}
	next.runs = state.runs
	state.whole, state.namespaces, state.runs, state.comparing = false, nil, nil, true
	return next, true
}

// comparing reports whether a comparison may be about to change the files of a type.
func (s *seeds) comparing(t schema.GroupVersionResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.types[t]
	return ok && state.comparing
}

// succeeded records the list with which each scope was compared, and the result.
func (s *seeds) succeeded(done seed, listed map[watch.Watch]position, f found) {
	s.finish(done, func(state *seedState) {
		for _, run := range done.runs {
			run.compared(done.resource, f, nil)
		}
		if len(done.namespaces) == 0 {
			clear(state.listed)
			state.alone = 0
		}
		state.alone += len(done.namespaces)
		for w, at := range listed {
			state.listed[w] = []position{at}
		}
		state.time, state.failure, state.delay = time.Now(), "", 0
	})
}

// failed schedules a retry of a comparison that failed in the cluster.
func (s *seeds) failed(done seed, err error) {
	s.finish(done, func(state *seedState) {
		for _, run := range done.runs {
			run.compared(done.resource, found{}, err)
		}
		state.delay = min(max(2*state.delay, seedRetry), seedRetryMax)
		state.notBefore, state.failure = time.Now().Add(state.delay), err.Error()
		state.request(done.namespaces)
	})
}

// putBack requests the comparison again.
func (s *seeds) putBack(taken seed) {
	s.finish(taken, func(state *seedState) {
		state.request(taken.namespaces)
		state.runs = append(taken.runs, state.runs...)
	})
}

// finish ends a comparison that was taken.
func (s *seeds) finish(done seed, note func(*seedState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.types[done.resource]
	if !ok {
		(&seedState{runs: done.runs}).deselected(done.resource)
		return
	}
	state.comparing = false
	note(state)
}

// request requests the comparison of some namespaces, or of everything if there are none or too many.
func (s *seedState) request(namespaces []string) {
	if len(namespaces) == 0 {
		s.whole = true
		return
	}
	if s.namespaces == nil {
		s.namespaces = map[string]bool{}
	}
	for _, namespace := range namespaces {
		s.namespaces[namespace] = true
	}
	s.whole = s.whole || s.alone+len(s.namespaces) > seedNamespaces
}

// takeSweep reports whether a sweep is due; sweepAgain requests it again.
func (s *seeds) takeSweep() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.sweep
	s.sweep = false
	return due
}

func (s *seeds) sweepAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep = true
}

// sweepWhenKnown requests a sweep by the next plan, because this one does not know all types.
func (s *seeds) sweepWhenKnown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown = true
}

// superseded reports whether a change is obsolete: a comparison has already brought Git to the same or a later state, and
// the change would revert the file; or its type is no longer selected. removed is set if no file is left after all pending changes
// of the object.
func (s *seeds) superseded(object outbox.Object, resourceVersion string, removed bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := object.GroupVersionResource()
	state, ok := s.types[t]
	if !ok {
		return true
	}
	supersedes := func(at position) bool { return at.supersedes(object, resourceVersion, removed) }
	return slices.ContainsFunc(state.listed[watch.Watch{Resource: t}], supersedes) ||
		slices.ContainsFunc(state.listed[watch.Watch{Resource: t, Namespace: object.Namespace}], supersedes)
}

// listedAt records how far an earlier process, or a part of a comparison, has compared a scope. The type may be selected later, as when the
// permissions of a rule's author cannot be checked at the start.
func (s *seeds) listedAt(w watch.Watch, at position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	listed := s.early
	if state, ok := s.types[w.Resource]; ok {
		listed = state.listed
	}
	if !slices.ContainsFunc(listed[w], func(earlier position) bool { return earlier.includes(at) }) {
		listed[w] = append(slices.DeleteFunc(listed[w], at.includes), at)
	}
}

// next returns the time of the next comparison (zero if none has a time), and whether a sweep is requested. A comparison
// that is already due waits for its watches, which wake the worker.
func (s *seeds) next() (due time.Time, sweep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	due = s.heldUntil
	for _, state := range s.types {
		if state.needed() && state.notBefore.After(now) && (due.IsZero() || state.notBefore.Before(due)) {
			due = state.notBefore
		}
	}
	return due, s.sweep
}

// outstanding reports whether the comparison of some type is pending.
func (s *seeds) outstanding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range s.types {
		if state.needed() || state.time.IsZero() {
			return true
		}
	}
	return false
}

// compared reports whether the last requested comparison of a type has succeeded.
func (s *seeds) compared(t schema.GroupVersionResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.types[t]
	return ok && !state.needed() && !state.time.IsZero() && state.failure == ""
}

// typeReport is the state of one type's comparisons for a GitDestinationStatus.
type typeReport struct {
	resource schema.GroupVersionResource
	time     time.Time
	failure  string
}

func (s *seeds) report() []typeReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	reports := make([]typeReport, 0, len(s.types))
	for _, t := range slices.SortedFunc(maps.Keys(s.types), compareResources) {
		reports = append(reports, typeReport{resource: t, time: s.types[t].time, failure: s.types[t].failure})
	}
	return reports
}
