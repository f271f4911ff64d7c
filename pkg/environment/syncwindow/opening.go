// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncwindow

import (
	"sort"
	"time"

	"github.com/robfig/cron/v3"
)

// opening is a window that has been read.
type opening struct {
	name     string
	schedule cron.Schedule
	duration time.Duration
	zone     *time.Location
}

// open reports whether the window is open: whether it has opened within its duration.
func (o opening) open(at time.Time) bool {
	opened := o.next(at.Add(-o.duration))
	return !opened.IsZero() && !opened.After(at)
}

// closes returns when the window that is open at a time closes, unless it opens again before.
func (o opening) closes(at time.Time) time.Time {
	at = at.Truncate(time.Second) // windows open on the minute
	seconds := sort.Search(int(o.duration/time.Second)+1, func(n int) bool {
		return !o.next(at.Add(-time.Duration(n) * time.Second)).After(at)
	})
	return o.next(at.Add(-time.Duration(seconds) * time.Second)).Add(o.duration)
}

// next returns the first opening after a time, in the schedule's time zone; the zero time if there is none within five
// years.
//
// The schedule is evaluated on the wall clock, which runs evenly until the zone's offset changes. A result after the change
// is discarded, and the evaluation continues after it. If the clock moves forward, the skipped times are evaluated first,
// and all of them take effect at the change.
func (o opening) next(after time.Time) time.Time {
	at := after.In(o.zone)
	shown := wallClock(at)
	for {
		shown = o.schedule.Next(shown)
		if shown.IsZero() {
			return shown
		}
		end := offsetEnd(at)
		if opens := later(at, instant(shown, at)); end.IsZero() || opens.Before(end) {
			return opens
		}
		lastShown := wallClock(end.Add(-time.Second).In(o.zone))
		at = end.In(o.zone)
		shown = earlier(lastShown, wallClock(at).Add(-time.Second))
	}
}

// offsetEnd returns when the zone's current offset ends; the zero time if it never does. On the last day of a leap year,
// ZoneBounds returns the start of that day.
func offsetEnd(at time.Time) time.Time {
	_, end := at.ZoneBounds()
	if !end.IsZero() && !end.After(at) {
		return at.Truncate(time.Hour).Add(time.Hour)
	}
	return end
}

// wallClock returns what a clock shows at a time, as a time in UTC.
func wallClock(at time.Time) time.Time {
	_, offset := at.Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// instant returns when a clock shows a wall-clock time with the offset at another time.
func instant(shown, at time.Time) time.Time {
	_, offset := at.Zone()
	return shown.Add(-time.Duration(offset) * time.Second).In(at.Location())
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
