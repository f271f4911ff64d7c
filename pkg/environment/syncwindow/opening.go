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

// open says whether the window is open: whether it has opened within its duration.
func (o opening) open(at time.Time) bool {
	opened := o.next(at.Add(-o.duration))
	return !opened.IsZero() && !opened.After(at)
}

// closes returns when the window closes that is open at a time, unless it opens once more until then.
func (o opening) closes(at time.Time) time.Time {
	at = at.Truncate(time.Second) // windows open on the minute
	seconds := sort.Search(int(o.duration/time.Second)+1, func(n int) bool {
		return !o.next(at.Add(-time.Duration(n) * time.Second)).After(at)
	})
	return o.next(at.Add(-time.Duration(seconds) * time.Second)).Add(o.duration)
}

// next returns the first time after another at which the window opens, in the time zone of its schedule; the zero time if
// there is none within five years.
//
// The schedule is asked about the face of a clock, which runs evenly from one change of the zone's offset to the next. What
// it says past the end of such a stretch does not come to be: the next stretch is asked. Where the clock is put forward,
// that one begins with the times that are skipped, all of which come at once.
func (o opening) next(after time.Time) time.Time {
	at := after.In(o.zone)
	shown := face(at)
	for {
		shown = o.schedule.Next(shown)
		if shown.IsZero() {
			return shown
		}
		end := stretchEnd(at)
		if opens := later(at, instant(shown, at)); end.IsZero() || opens.Before(end) {
			return opens
		}
		lastShown := face(end.Add(-time.Second).In(o.zone))
		at = end.In(o.zone)
		shown = earlier(lastShown, face(at).Add(-time.Second))
	}
}

// stretchEnd is when the offset changes that the zone has at a time, or before; the zero time if it never does. On the last
// day of a leap year, ZoneBounds says that it changed when that day began.
func stretchEnd(at time.Time) time.Time {
	_, end := at.ZoneBounds()
	if !end.IsZero() && !end.After(at) {
		return at.Truncate(time.Hour).Add(time.Hour)
	}
	return end
}

// face is what a clock shows at a time, as a time in UTC.
func face(at time.Time) time.Time {
	_, offset := at.Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// instant is when a clock shows what is wanted if it goes on as it goes at a time.
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
