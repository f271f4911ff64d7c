// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncwindow

import (
	"fmt"
	"time"
)

// Verdict is whether work may begin at a time.
type Verdict struct {
	Allowed bool
	// Next is when work may begin that is not allowed now, in the time zone of the window. The zero time if windows never
	// let it, as far as it is known.
	Next time.Time
	// Window is the name of the window that lets it begin then, and Kind what it does: an Allow opens, a Deny closes. Without
	// Next it is a window that keeps it from beginning.
	Window string
	Kind   Kind
}

// Sentence says what work waits for, such as: window nightly opens 18:00 CET. Empty when it is allowed.
func (v Verdict) Sentence(now time.Time) string {
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

// layout shows the day of a time unless it is today, and the date unless it is within a week.
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

// midnight is the beginning of the day that a clock shows, as a time in UTC.
func midnight(at time.Time) time.Time {
	year, month, day := at.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}
