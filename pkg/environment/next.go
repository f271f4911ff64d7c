// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/syncwindow"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// choice is what is to be done next about the records of an environment.
type choice struct {
	// record is the one whose run is to begin, nil if there is none.
	record *v1alpha1.SyncStatus
	// held says why there is none although one waits.
	held verdict
	// again is when to look again, the zero time if something else will have happened then.
	again time.Time
}

// next chooses. A run that was interrupted goes before all others, what the catalog offers before what workloads refer to, and of
// several runs from the catalog the newest: it does what the others would.
func (s *situation) next() choice {
	if s.busy || !s.obstacle.ok() {
		return choice{}
	}
	var out choice
	for _, record := range s.candidates() {
		held, again := s.hold(record)
		out.again = earliest(out.again, again)
		switch {
		case !again.IsZero() && held.ok(): // Its time has not come.
		case held.ok():
			return choice{record: record}
		case out.held.ok():
			out.held = held
		}
	}
	if out.held.ok() {
		out.held = s.unwished()
	}
	return out
}

// candidates are the records that can be begun, those first that go first.
func (s *situation) candidates() []*v1alpha1.SyncStatus {
	var out []*v1alpha1.SyncStatus
	for _, record := range s.records {
		switch record.Status.State {
		case v1alpha1.SyncStatePending, v1alpha1.SyncStateInProgress, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateFailed:
			if s.isWanted(record) {
				out = append(out, record)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *v1alpha1.SyncStatus) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), compareAges(b, a))
	})
	return out
}

// isWanted says whether somebody, or the spec, wants a record's run: what changes in the source is a prompt where nothing is synced
// by itself.
func (s *situation) isWanted(record *v1alpha1.SyncStatus) bool {
	return !record.Status.AutoTriggered || record.Status.State == v1alpha1.SyncStateInProgress || s.environment.Spec.AutoSync ||
		record.Status.State == v1alpha1.SyncStateRetrying
}

func rank(record *v1alpha1.SyncStatus) int {
	rank := 0
	if record.Status.State != v1alpha1.SyncStateInProgress {
		rank += 2
	}
	if record.Spec.Type == v1alpha1.SyncTypeDependency {
		rank++
	}
	return rank
}

// hold says what a record's run waits for, and when that is over if that is known; without a verdict that is the time of its next
// attempt. What has begun is brought to its end.
func (s *situation) hold(record *v1alpha1.SyncStatus) (verdict, time.Time) {
	switch record.Status.State {
	case v1alpha1.SyncStateInProgress:
		return verdict{}, time.Time{}
	case v1alpha1.SyncStateFailed:
		if at, _ := syncstatus.NextAttempt(record, s.policy.Retry); at.After(s.now) {
			return verdict{}, at
		}
	}
	if isAutomatic(record) {
		if held := s.stopped(record.Spec.Type); !held.ok() {
			return held, time.Time{}
		}
	}
	if record.Status.Force || syncstatus.IsEdit(record.Spec.Batch) {
		return verdict{}, time.Time{}
	}
	return s.window()
}

// stopped says why a run of a type is not begun that nobody has asked for.
func (s *situation) stopped(of v1alpha1.SyncType) verdict {
	switch {
	case of == v1alpha1.SyncTypeEnvironment && s.policy.Suspend.EnvironmentAutoSync:
		return verdict{v1alpha1.ReasonSuspended, "automatic syncs from catalogs are suspended by the SyncPolicy"}
	case of == v1alpha1.SyncTypeDependency && s.policy.Suspend.DependencyAutoSync:
		return verdict{v1alpha1.ReasonSuspended, "automatic syncs of what workloads refer to are suspended by the SyncPolicy"}
	case s.pinned() > 0:
		return s.pin()
	}
	return s.lost
}

// unwished says why the catalog's offer is not taken by itself although the spec wants that. That a permission is lost is said also
// while nothing is offered: what is offered next would not be taken.
func (s *situation) unwished() verdict {
	held := s.withheld()
	if !s.environment.Spec.AutoSync || !s.isBehind() && held.reason != v1alpha1.ReasonPermissionLost {
		return verdict{}
	}
	return held
}

// window says whether the windows of the spec let a run begin, and when else.
func (s *situation) window() (verdict, time.Time) {
	windows, errs := syncwindow.Compile(windowsOf(&s.environment.Spec), field.NewPath("spec", "syncWindows"))
	if len(errs) > 0 {
		return verdict{v1alpha1.ReasonWindowClosed, errs.ToAggregate().Error()}, time.Time{} // Validation refuses them.
	}
	at := windows.At(s.now)
	if at.Allowed {
		return verdict{}, time.Time{}
	}
	return verdict{v1alpha1.ReasonWindowClosed, at.Message(s.now)}, at.Next
}

func windowsOf(spec *v1alpha1.EnvironmentSpec) []syncwindow.Window {
	windows := make([]syncwindow.Window, len(spec.SyncWindows))
	for i, w := range spec.SyncWindows {
		windows[i] = syncwindow.Window{
			Name: w.Name, Kind: syncwindow.Kind(w.Kind), Schedule: w.Schedule, Duration: w.Duration.Duration, TimeZone: w.TimeZone,
		}
	}
	return windows
}

// earliest is the earlier of two times, of which the zero time is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
