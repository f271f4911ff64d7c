// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncwindow

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kind is the effect of a window.
type Kind string

const (
	// Allow lets syncs start while the window is open.
	Allow Kind = "Allow"
	// Deny prevents syncs from starting while the window is open.
	Deny Kind = "Deny"
)

// Window is a recurring window.
type Window struct {
	Name string
	Kind Kind
	// Schedule is when it opens: five cron fields, or a macro such as @daily.
	Schedule string
	// Duration is how long it stays open.
	Duration time.Duration
	// TimeZone is the IANA name of the schedule's time zone. The default is UTC.
	TimeZone string
}

// Windows are compiled windows. The zero value allows syncs at any time.
type Windows struct{ allow, deny []opening }

// Compile compiles windows. The errors name fields below the path.
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

// maxTransitions limits the openings and closings to evaluate before windows are assumed to never allow a sync.
const maxTransitions = 1000

// At returns whether a sync is allowed at a time, and otherwise when.
func (w Windows) At(now time.Time) Decision {
	at, verdict := now, Decision{}
	for range maxTransitions {
		if denying, ok := openAt(w.deny, at); ok {
			at = denying.closes(at)
			verdict = Decision{Window: denying.name, Kind: Deny, Next: at}
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
		verdict = Decision{Window: opens.name, Kind: Allow, Next: at}
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

// firstToOpen returns the window that opens first after a time.
func firstToOpen(windows []opening, after time.Time) (first opening, found bool) {
	var soonest time.Time
	for _, window := range windows {
		if next := window.next(after); !next.IsZero() && (!found || next.Before(soonest)) {
			first, soonest, found = window, next, true
		}
	}
	return first, found
}
