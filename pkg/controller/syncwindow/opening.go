// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncwindow

import (
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

// next returns the first opening after a time, in the schedule's time zone; the zero time if there is none within five
// years.
//
// The schedule is evaluated on the wall clock, which runs evenly until the zone's offset changes. A result after the change
// is discarded, and the evaluation continues after it. If the clock moves forward, the skipped times are evaluated first,
// and all of them take effect at the change.
func (o opening) next(after time.Time) time.Time {
	at := after.In(o.zone)
	from := wallClock(at)
	shown := o.schedule.Next(from)
	for !shown.IsZero() {
		end := offsetEnd(at)
		if opens := later(at, instant(shown, at)); end.IsZero() || opens.Before(end) {
			return opens
		}
		lastShown := wallClock(end.Add(-time.Second).In(o.zone))
		at = end.In(o.zone)
		before := from
		from = earlier(lastShown, wallClock(at).Add(-time.Second))
		if from.Before(before) || !from.Before(shown) { // Otherwise the search would have the same result.
			shown = o.schedule.Next(from)
		}
	}
	return time.Time{}
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
