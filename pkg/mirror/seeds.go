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
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// A type that could not be listed is tried again after seedRetry, doubling up to
// seedRetryMax.
const (
	seedRetry    = time.Second
	seedRetryMax = time.Minute
	// seedPatience is how long the first comparison of a type that has come to be selected is waited for, so that those of
	// several types share commits: as a rule their watches start within a second.
	seedPatience = 10 * time.Second
)

// seeds keeps, for one destination, which types have to be listed and compared with the
// branch, and what the comparisons showed.
type seeds struct {
	mu    sync.Mutex
	types map[schema.GroupVersionResource]*seedState
	// sweep says that files of types that are selected no more have to be looked for.
	sweep bool
	// unknown says that a sweep left files alone whose types discovery could not ask for.
	unknown bool
	// runs are the requests to compare, on their way and over, oldest first.
	runs []*syncRun
	// heldUntil is until when comparisons that are due wait for types whose watches start; zero: they do not.
	heldUntil time.Time
}

type seedState struct {
	// fingerprint is that of the selection which was compared last or is to be.
	fingerprint string
	// whole asks for the comparison of all objects, namespaces for those of some.
	whole      bool
	namespaces map[string]bool
	notBefore  time.Time
	delay      time.Duration
	// selected is when the type came to be selected.
	selected time.Time
	// comparing says that a comparison has been taken and has not come to its end.
	comparing bool
	// listed is the resourceVersion at which each scope was last compared.
	listed  map[watch.Watch]string
	time    time.Time
	failure string
	// runs are the requests that wait for a comparison.
	runs []*syncRun
}

func (s *seedState) needed() bool { return s.whole || len(s.namespaces) > 0 }

// seed is one comparison to make.
type seed struct {
	resource schema.GroupVersionResource
	// namespaces limits it; empty: everything selected.
	namespaces []string
	// runs are the requests that wait for it.
	runs []*syncRun
}

// newSeeds begins with a sweep: what a type left behind that went while nobody looked has
// to be found.
func newSeeds() *seeds {
	return &seeds{types: map[schema.GroupVersionResource]*seedState{}, sweep: true}
}

// want takes the types that are selected, with the fingerprints of their selections, and
// asks for what that makes necessary. It reports whether there is something to do.
func (s *seeds) want(fingerprints map[schema.GroupVersionResource]string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.unknown
	s.sweep, s.unknown = s.sweep || s.unknown, false
	for t, fingerprint := range fingerprints {
		state, ok := s.types[t]
		if !ok {
			state = &seedState{listed: map[watch.Watch]string{}, selected: time.Now()}
			s.types[t] = state
		}
		if !ok || state.fingerprint != fingerprint {
			state.fingerprint, state.whole, state.notBefore = fingerprint, true, time.Time{}
			changed = true
		}
	}
	for t := range s.types {
		if _, ok := fingerprints[t]; !ok {
			s.types[t].noLonger(t)
			delete(s.types, t)
			s.sweep, changed = true, true
		}
	}
	return changed
}

// noLonger answers the requests for a type that is selected no more.
func (s *seedState) noLonger(t schema.GroupVersionResource) {
	for _, run := range s.runs {
		run.compared(t, found{}, errNoLongerSelected)
	}
}

var errNoLongerSelected = errors.New("no rule selects it any more")

// invalidate asks for the comparison of one type, if it is selected.
func (s *seeds) invalidate(t schema.GroupVersionResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state, ok := s.types[t]; ok {
		state.whole, state.notBefore = true, time.Time{}
	}
}

// invalidateNamespace asks for the comparison of one type in one namespace.
func (s *seeds) invalidateNamespace(t schema.GroupVersionResource, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state, ok := s.types[t]; ok && !state.whole {
		state.ask([]string{namespace})
	}
}

// invalidateAll asks for the comparison of everything: the branch is not what it was.
func (s *seeds) invalidateAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep = true
	for _, state := range s.types {
		state.whole = true
	}
}

// take returns the next comparison whose watches are running, so that nothing falls
// between the list and the watch. While watches of types that have just come to be selected are starting it returns none, for
// seedPatience at most. Who takes one says succeeded, failed or putBack.
func (s *seeds) take(running, starting func(schema.GroupVersionResource) bool) (seed, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []schema.GroupVersionResource
	now := time.Now()
	s.heldUntil = time.Time{}
	for t, state := range s.types {
		switch {
		case !state.needed() || state.awaitsLook() || now.Before(state.notBefore):
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

// comparing says whether the files of a type may be about to change by a comparison.
func (s *seeds) comparing(t schema.GroupVersionResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.types[t]
	return ok && state.comparing
}

// succeeded notes the resourceVersion at which each scope was listed, and what was found.
func (s *seeds) succeeded(done seed, listed map[watch.Watch]string, f found) {
	s.finish(done, func(state *seedState) {
		for _, run := range done.runs {
			run.compared(done.resource, f, nil)
		}
		if len(done.namespaces) == 0 {
			clear(state.listed)
		}
		maps.Copy(state.listed, listed)
		state.time, state.failure, state.delay = time.Now(), "", 0
	})
}

// failed asks for the comparison again, later: the cluster could not be asked.
func (s *seeds) failed(done seed, err error) {
	s.finish(done, func(state *seedState) {
		for _, run := range done.runs {
			run.compared(done.resource, found{}, err)
		}
		state.delay = min(max(2*state.delay, seedRetry), seedRetryMax)
		state.notBefore, state.failure = time.Now().Add(state.delay), err.Error()
		state.ask(done.namespaces)
	})
}

// putBack asks for the comparison again.
func (s *seeds) putBack(taken seed) {
	s.finish(taken, func(state *seedState) {
		state.ask(taken.namespaces)
		state.runs = append(taken.runs, state.runs...)
	})
}

// finish ends a comparison that was taken.
func (s *seeds) finish(done seed, note func(*seedState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.types[done.resource]
	if !ok {
		(&seedState{runs: done.runs}).noLonger(done.resource)
		return
	}
	state.comparing = false
	note(state)
}

// ask asks for the comparison of some namespaces; none: of everything.
func (s *seedState) ask(namespaces []string) {
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
}

// takeSweep returns whether a sweep is due; sweepAgain asks for it again.
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

// sweepWhenKnown asks for a sweep by the next plan: this one does not know all types.
func (s *seeds) sweepWhenKnown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown = true
}

// superseded says that a change need not be made any more: a comparison made after it has
// already brought Git to the state of that time or later, and the change would take the
// file back; or its type is selected no more.
func (s *seeds) superseded(object Object, resourceVersion string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := object.resource()
	state, ok := s.types[t]
	if !ok {
		return true
	}
	for _, w := range []watch.Watch{{Resource: t}, {Resource: t, Namespace: object.Namespace}} {
		order, err := resourceversion.CompareResourceVersion(resourceVersion, state.listed[w])
		if err == nil && order <= 0 {
			return true
		}
	}
	return false
}

// listedAt notes that an earlier process has brought Git to the state of a list.
func (s *seeds) listedAt(w watch.Watch, resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.types[w.Resource]
	if !ok {
		return
	}
	if order, err := resourceversion.CompareResourceVersion(resourceVersion, state.listed[w]); err != nil || order > 0 {
		state.listed[w] = resourceVersion
	}
}

// next returns when the earliest comparison that waits for its time, or for others, is due (zero: none
// waits), and whether a sweep is asked for. Comparisons whose time has come and that are
// still here wait for their watches, which wake the worker.
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

// outstanding says whether some type has not been compared since that was asked for.
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

// compared says whether a type has been compared since that was last asked for.
func (s *seeds) compared(t schema.GroupVersionResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.types[t]
	return ok && !state.needed() && !state.time.IsZero() && state.failure == ""
}

// typeReport is what a GitDestinationStatus says about one type's comparisons.
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
