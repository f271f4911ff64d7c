// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// keptSyncs is how many completed sync requests a GitDestinationStatus lists.
const keptSyncs = 8

// syncRun is the state of a sync request of a destination. It is guarded by the lock of its seeds.
type syncRun struct {
	progress v1alpha1.SyncProgress
	// full requests a full load of the branch.
	full bool
	// branchRead is set once the remote has been read since the request.
	branchRead bool
	// waiting are the types that have not been compared yet.
	waiting map[schema.GroupVersionResource]struct{}
	// sweep is set until the files of types that are no longer selected have been swept.
	sweep bool
}

// found is the result of a comparison.
type found struct{ written, removed, held int }

// request starts the new requests of a destination's status. It is called after selectTypes.
func (s *seeds) request(pending []v1alpha1.PendingSync) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range pending {
		if !slices.ContainsFunc(s.runs, func(run *syncRun) bool { return run.progress.ID == p.ID }) {
			s.runs = append(s.runs, s.begin(p))
		}
	}
	kept := 0
	for _, run := range slices.Backward(s.runs) {
		inStatus := slices.ContainsFunc(pending, func(p v1alpha1.PendingSync) bool { return p.ID == run.progress.ID })
		if !run.over() || inStatus {
			continue
		}
		if kept++; kept > keptSyncs {
			s.runs = slices.DeleteFunc(s.runs, func(other *syncRun) bool { return other == run })
		}
	}
}

// begin requests the comparisons of a sync request. The caller holds mu.
func (s *seeds) begin(p v1alpha1.PendingSync) *syncRun {
	run := &syncRun{
		progress: v1alpha1.SyncProgress{ID: p.ID, Time: p.Time}, full: p.Full,
		waiting: map[schema.GroupVersionResource]struct{}{}, sweep: len(p.Types) == 0,
	}
	for t, state := range s.types {
		if len(p.Types) == 0 || slices.ContainsFunc(p.Types, func(name string) bool { return isNamed(t, name) }) {
			state.whole, state.notBefore = true, time.Time{}
			state.runs = append(state.runs, run)
			run.waiting[t] = struct{}{}
		}
	}
	for _, name := range p.Types {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(run.waiting)), func(t schema.GroupVersionResource) bool { return isNamed(t, name) }) {
			run.progress.Failures = append(run.progress.Failures, name+": no rule selects it")
		}
	}
	run.progress.Types = int64(len(run.waiting))
	return run
}

// isNamed reports whether a name stands for a type: its plural, with or without its group.
func isNamed(t schema.GroupVersionResource, name string) bool {
	return name == t.Resource || name == t.GroupResource().String()
}

// unread returns the requests for which the remote has not been read yet.
func (s *seeds) unread() []*syncRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.runs), func(run *syncRun) bool { return run.branchRead })
}

// markRead records that the remote has been read for some requests.
func (s *seeds) markRead(runs []*syncRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range runs {
		run.branchRead = true
		s.sweep = s.sweep || run.sweep
		run.settle()
	}
}

// awaitsRead reports whether a comparison of the type must wait until the remote has been read. The caller holds mu.
func (s *seedState) awaitsRead() bool {
	return slices.ContainsFunc(s.runs, func(run *syncRun) bool { return !run.branchRead })
}

// compared records the result of the comparison of a type, or its error.
func (r *syncRun) compared(t schema.GroupVersionResource, f found, err error) {
	if _, ok := r.waiting[t]; !ok {
		return
	}
	delete(r.waiting, t)
	if err != nil {
		r.progress.Failures = append(r.progress.Failures, fmt.Sprintf("%s: %v", t.GroupResource(), err))
	} else {
		r.progress.Compared++
	}
	r.add(f)
	r.settle()
}

func (r *syncRun) add(f found) {
	r.progress.FilesWritten += int64(f.written)
	r.progress.FilesRemoved += int64(f.removed)
	r.progress.OrphansHeld += int64(f.held)
}

// settle completes the request if nothing is left to do.
func (r *syncRun) settle() {
	if r.branchRead && len(r.waiting) == 0 && !r.sweep && !r.over() {
		now := metav1.NewTime(time.Now().Truncate(time.Second))
		r.progress.CompletionTime = &now
	}
}

// isRequested reports whether a request waits for the comparison of a type, or whether the type is not selected any more.
func (s *seeds) isRequested(t schema.GroupVersionResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, selected := s.types[t]
	return !selected || len(state.runs) > 0
}

func (r *syncRun) over() bool { return r.progress.CompletionTime != nil }

// swept records the result of a sweep, or that there is none now. It reports whether a request was waiting for it.
func (s *seeds) swept(f found) (waited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range s.runs {
		if run.sweep && run.branchRead {
			run.sweep, waited = false, true
			run.add(f)
			run.settle()
		}
	}
	return waited
}

// syncReports returns the requests for a GitDestinationStatus.
func (s *seeds) syncReports() []v1alpha1.SyncProgress {
	s.mu.Lock()
	defer s.mu.Unlock()
	var reports []v1alpha1.SyncProgress
	for _, run := range s.runs {
		reports = append(reports, *run.progress.DeepCopy())
	}
	return reports
}

// withoutDone returns the requests that are not completed according to a GitDestinationStatus.
func withoutDone(pending []v1alpha1.PendingSync, recorded []v1alpha1.SyncProgress) []v1alpha1.PendingSync {
	return slices.DeleteFunc(slices.Clone(pending), func(p v1alpha1.PendingSync) bool {
		return slices.ContainsFunc(recorded, func(s v1alpha1.SyncProgress) bool { return s.ID == p.ID && s.CompletionTime != nil })
	})
}

// newlyRequested reports whether a destination's status has a new sync request.
func newlyRequested(before, after any) bool {
	a, okA := before.(*v1alpha1.GitDestination)
	b, okB := after.(*v1alpha1.GitDestination)
	return okA && okB && slices.ContainsFunc(b.Status.PendingSyncs, func(p v1alpha1.PendingSync) bool {
		return !slices.ContainsFunc(a.Status.PendingSyncs, func(q v1alpha1.PendingSync) bool { return q.ID == p.ID })
	})
}
