// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/controller/syncwindow"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// choice is the decision which record to start next.
type choice struct {
	// record is the record to start, nil if there is none.
	record *v1alpha1.SyncStatus
	// held is why a waiting record is not started.
	held conditions.Reason
	// again is when to reconcile again, zero if an event will trigger that.
	again time.Time
}

// schedule determines the next sync.
type schedule struct {
	spec *v1alpha1.EnvironmentSpec
	// catalog is nil if it does not exist.
	catalog    *v1alpha1.AppCatalog
	records    records
	policy     *v1alpha1.SyncPolicySpec
	automation *automation
	// isBehind is set if the environment is known to differ from its catalog.
	isBehind bool
	// isBlocked is set while nothing can be started.
	isBlocked bool
	now       time.Time
}

// next returns the next record to start. Interrupted syncs come first, then syncs from the catalog, then those of dependencies. Of
// several syncs from the catalog the newest is started, because it includes the others.
func (s *schedule) next() choice {
	if s.isBlocked {
		return choice{}
	}
	var out choice
	for _, record := range s.candidates() {
		held, again := s.hold(record)
		out.again = earliest(out.again, again)
		switch {
		case !again.IsZero() && held.IsZero(): // Its next attempt is not due.
		case held.IsZero():
			return choice{record: record}
		case out.held.IsZero():
			out.held = held
		}
	}
	if out.held.IsZero() {
		out.held = s.automation.reason(s.isBehind)
	}
	return out
}

// candidates returns the records that can be started, highest priority first.
func (s *schedule) candidates() []*v1alpha1.SyncStatus {
	var out []*v1alpha1.SyncStatus
	for _, record := range s.records {
		switch record.Status.State {
		case v1alpha1.SyncStatePending, v1alpha1.SyncStateInProgress, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateFailed:
			if isWanted(s.spec, record) {
				out = append(out, record)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *v1alpha1.SyncStatus) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), compareAges(b, a))
	})
	return out
}

// isWanted reports whether a user or the spec requests the sync of a record. Without spec.autoSync, records of source changes are only
// prompts.
func isWanted(spec *v1alpha1.EnvironmentSpec, record *v1alpha1.SyncStatus) bool {
	return !record.Status.AutoTriggered || record.Status.State == v1alpha1.SyncStateInProgress || spec.AutoSync ||
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

// hold returns why a record cannot be started now, and until when if that is known. A time without a reason is that of the next
// attempt. Records in progress are always continued.
func (s *schedule) hold(record *v1alpha1.SyncStatus) (conditions.Reason, time.Time) {
	switch record.Status.State {
	case v1alpha1.SyncStateInProgress:
		return conditions.Reason{}, time.Time{}
	case v1alpha1.SyncStateFailed:
		if at, _ := syncstatus.NextAttempt(record, s.policy.Retry); at.After(s.now) {
			return conditions.Reason{}, at
		}
	}
	if isAutomatic(record) {
		if held := s.automation.stopped(record.Spec.Type); !held.IsZero() {
			return held, time.Time{}
		}
	} else if s.isOutdated(record) {
		return s.automation.replaced, time.Time{}
	}
	if record.Status.Force || syncstatus.IsEdit(record.Spec.Batch) {
		return conditions.Reason{}, time.Time{}
	}
	return s.window()
}

// isOutdated reports whether the sync of a record was requested before the catalog was replaced.
func (s *schedule) isOutdated(record *v1alpha1.SyncStatus) bool {
	return !s.automation.replaced.IsZero() && takesNewest(s.automation.environment, record) && !isRequestedFrom(s.catalog, record)
}

// window returns whether the sync windows of the spec allow a start now, and otherwise when they will.
func (s *schedule) window() (conditions.Reason, time.Time) {
	windows, errs := syncwindow.Compile(windowsOf(s.spec), field.NewPath("spec", "syncWindows"))
	if len(errs) > 0 {
		return conditions.Reason{Code: v1alpha1.ReasonWindowClosed, Message: errs.ToAggregate().Error()}, time.Time{} // Validation refuses them.
	}
	at := windows.At(s.now)
	if at.Allowed {
		return conditions.Reason{}, time.Time{}
	}
	return conditions.Reason{Code: v1alpha1.ReasonWindowClosed, Message: at.Message(s.now)}, at.Next
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

// earliest returns the earlier of two times. The zero time means none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
