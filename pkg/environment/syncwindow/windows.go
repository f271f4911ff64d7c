// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncwindow

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kind is what a window does.
type Kind string

const (
	// Allow lets work begin while the window is open.
	Allow Kind = "Allow"
	// Deny keeps work from beginning while the window is open.
	Deny Kind = "Deny"
)

// Window opens again and again.
type Window struct {
	Name string
	Kind Kind
	// Schedule says when it opens, as five fields of cron or as @daily and the like.
	Schedule string
	// Duration is how long it stays open.
	Duration time.Duration
	// TimeZone is that of the schedule, by its name in the time zone database. Empty means UTC.
	TimeZone string
}

// Windows are read windows. The zero value, without any, lets work begin at any time.
type Windows struct{ allow, deny []opening }

// Compile reads windows. The errors name fields below the path.
func Compile(windows []Window, path *field.Path) (Windows, field.ErrorList) {
	var compiled Windows
	var errs field.ErrorList
	for i, window := range windows {
		opening, problems := compile(window, path.Index(i))
		errs = append(errs, problems...)
		switch window.Kind {
		case Allow:
			compiled.allow = append(compiled.allow, opening)
		case Deny:
			compiled.deny = append(compiled.deny, opening)
		default:
			errs = append(errs, field.NotSupported(path.Index(i).Child("kind"), window.Kind, []Kind{Allow, Deny}))
		}
	}
	if len(errs) > 0 {
		return Windows{}, errs
	}
	return compiled, nil
}

// maxTurns is how many times windows may open or close before it is taken for granted that they never let work begin.
const maxTurns = 1000

// At says whether work may begin at a time, and else when it may.
func (w Windows) At(now time.Time) Verdict {
	at, verdict := now, Verdict{}
	for range maxTurns {
		if denying, ok := openAt(w.deny, at); ok {
			at = denying.closes(at)
			verdict = Verdict{Window: denying.name, Kind: Deny, Next: at}
			continue
		}
		if _, ok := openAt(w.allow, at); ok || len(w.allow) == 0 {
			verdict.Allowed = at.Equal(now)
			return verdict
		}
		opens, ok := firstToOpen(w.allow, at)
		if !ok {
			break
		}
		at = opens.next(at)
		verdict = Verdict{Window: opens.name, Kind: Allow, Next: at}
	}
	verdict.Next = time.Time{}
	return verdict
}

// openAt returns a window that is open at a time.
func openAt(windows []opening, at time.Time) (opening, bool) {
	for _, window := range windows {
		if window.open(at) {
			return window, true
		}
	}
	return opening{}, false
}

// firstToOpen returns the window that is the first to open after a time.
func firstToOpen(windows []opening, after time.Time) (first opening, found bool) {
	var soonest time.Time
	for _, window := range windows {
		if next := window.next(after); !next.IsZero() && (!found || next.Before(soonest)) {
			first, soonest, found = window, next, true
		}
	}
	return first, found
}
