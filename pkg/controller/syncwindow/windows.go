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

const (
	// maxTransitions limits the openings and closings to evaluate before windows are assumed to never allow a sync.
	maxTransitions = 1000
	// maxSearches limits the searches of schedules in one evaluation in the same way.
	maxSearches = 10_000
)

// At returns whether a sync is allowed at a time, and otherwise when.
func (w Windows) At(now time.Time) Decision {
	e := newEvaluation(w)
	at, verdict := now, Decision{}
	for range maxTransitions {
		if e.searches > maxSearches {
			break
		}
		if denying := openAt(e.deny, at); denying != nil {
			at = denying.closes(at)
			verdict = Decision{Window: denying.name, Kind: Deny, Next: at}
			continue
		}
		if len(e.allow) == 0 || openAt(e.allow, at) != nil {
			verdict.Allowed = at.Equal(now)
			return verdict
		}
		opening := firstToOpen(e.allow, at)
		if opening == nil {
			break
		}
		at = opening.opens(at)
		verdict = Decision{Window: opening.name, Kind: Allow, Next: at}
	}
	verdict.Next = time.Time{}
	return verdict
}

// openAt returns a window that is open at a time, nil if none is.
func openAt(windows []*evaluated, at time.Time) *evaluated {
	for _, window := range windows {
		if window.open(at) {
			return window
		}
	}
	return nil
}

// firstToOpen returns the window that opens first after a time, nil if none does.
func firstToOpen(windows []*evaluated, after time.Time) (first *evaluated) {
	var soonest time.Time
	for _, window := range windows {
		if next := window.opens(after); !next.IsZero() && (first == nil || next.Before(soonest)) {
			first, soonest = window, next
		}
	}
	return first
}
