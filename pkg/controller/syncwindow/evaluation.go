// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncwindow

import (
	"sort"
	"time"
)

// evaluation is one evaluation of windows at increasing times. A search of a schedule for its next opening can take a hundred
// microseconds, and there are dozens of windows at each of a thousand times, so every result is used as long as it is valid.
type evaluation struct {
	allow, deny []*evaluated
	// searches is the number of searches so far.
	searches int
}

func newEvaluation(windows Windows) *evaluation {
	e := &evaluation{}
	of := func(openings []opening) []*evaluated {
		out := make([]*evaluated, len(openings))
		for i := range openings {
			out[i] = &evaluated{opening: openings[i], searches: &e.searches}
		}
		return out
	}
	e.allow, e.deny = of(windows.allow), of(windows.deny)
	return e
}

// evaluated is a window with the results of searches.
type evaluated struct {
	opening
	searches *int
	// recent is the last search that began one duration before the time of evaluation, coming the last that began at that time.
	recent, coming search
}

// search is the result of a search.
type search struct {
	done        bool
	from, found time.Time
}

// covers reports whether a search after a time has the same result.
func (s *search) covers(after time.Time) bool {
	return s.done && !after.Before(s.from) && (s.found.IsZero() || after.Before(s.found))
}

func (w *evaluated) search(remembered *search, after time.Time) time.Time {
	if !remembered.covers(after) {
		*remembered = search{done: true, from: after, found: w.next(after)}
	}
	return remembered.found
}

// next is that of the opening, and counts.
func (w *evaluated) next(after time.Time) time.Time {
	*w.searches++
	return w.opening.next(after)
}

// opens returns when the window opens next; the zero time if it does not.
func (w *evaluated) opens(at time.Time) time.Time { return w.search(&w.coming, at) }

// open reports whether the window is open: whether it has opened within its duration.
func (w *evaluated) open(at time.Time) bool {
	opened := w.search(&w.recent, at.Add(-w.duration))
	return !opened.IsZero() && !opened.After(at)
}

// closes returns when the window that is open at a time closes, unless it opens again before.
func (w *evaluated) closes(at time.Time) time.Time {
	at = at.Truncate(time.Second) // windows open on the minute
	opened := w.search(&w.recent, at.Add(-w.duration))
	if again := w.next(opened); again.IsZero() || again.After(at) {
		return opened.Add(w.duration)
	}
	seconds := sort.Search(int(w.duration/time.Second)+1, func(n int) bool {
		return !w.next(at.Add(-time.Duration(n) * time.Second)).After(at)
	})
	return w.next(at.Add(-time.Duration(seconds) * time.Second)).Add(w.duration)
}
