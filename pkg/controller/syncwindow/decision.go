// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncwindow

import (
	"fmt"
	"time"
)

// Decision is whether a sync is allowed to start at a time.
type Decision struct {
	Allowed bool
	// Next is when a sync is allowed that is not allowed now, in the window's time zone. It is the zero time if no window
	// ever allows it, as far as the schedules can be evaluated.
	Next time.Time
	// Window is the name of the window that allows it at Next, and Kind its kind: an Allow window opens, a Deny window
	// closes. Without Next, it is a window that prevents it.
	Window string
	Kind   Kind
}

// Message describes what a sync waits for, such as: window nightly opens 18:00 CET. It is empty if the sync is allowed.
func (v Decision) Message(now time.Time) string {
	verb := "opens"
	if v.Kind == Deny {
		verb = "closes"
	}
	switch {
	case v.Allowed:
		return ""
	case v.Next.IsZero():
		return fmt.Sprintf("window %s lets nothing begin as far as can be seen ahead", v.Window)
	default:
		return fmt.Sprintf("window %s %s %s", v.Window, verb, v.Next.Format(layout(now.In(v.Next.Location()), v.Next)))
	}
}

// layout omits the day if it is today, and the date within a week.
func layout(now, then time.Time) string {
	const today, thisWeek, anyTime = "15:04 MST", "Mon 15:04 MST", "2006-01-02 15:04 MST"
	days := int(midnight(then).Sub(midnight(now)).Hours() / 24)
	switch {
	case days == 0:
		return today
	case days < 7:
		return thisWeek
	default:
		return anyTime
	}
}

// midnight returns the start of the day of a wall clock, as a time in UTC.
func midnight(at time.Time) time.Time {
	year, month, day := at.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}
