// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncwindow

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// counted counts the searches of a schedule.
type counted struct {
	cron.Schedule
	searches *int
}

func (c counted) Next(after time.Time) time.Time {
	*c.searches++
	return c.Schedule.Next(after)
}

// count compiles windows, and returns the number of searches of their schedules so far.
func count(t *testing.T, windows []Window) (Windows, *int) {
	t.Helper()
	compiled, errs := Compile(windows, field.NewPath("w"))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	searches := new(int)
	for _, openings := range [][]opening{compiled.allow, compiled.deny} {
		for i := range openings {
			openings[i].schedule = counted{openings[i].schedule, searches}
		}
	}
	return compiled, searches
}

// Schedules that open in years and one that opens every minute are searched a few times each, not once at each minute.
func TestSearchesAreBounded(t *testing.T) {
	every := Window{Name: "every", Kind: Deny, Schedule: "* * * * *", Duration: time.Minute}
	var rare, frequent []Window
	for i := range 49 {
		name := fmt.Sprint("w", i)
		rare = append(rare, Window{Name: name, Kind: Deny, Schedule: "59 23 29 2 *", Duration: time.Minute, TimeZone: "Europe/Berlin"})
		frequent = append(frequent, Window{
			Name: name, Kind: Deny, Schedule: fmt.Sprintf("%d-59/2 * * * *", i%2), Duration: 90 * time.Second, TimeZone: "Europe/Berlin",
		})
	}
	for name, test := range map[string]struct {
		windows []Window
		most    int
	}{
		"rare":     {append(rare, every), 10 * maxTransitions},
		"frequent": {append(frequent, every), 2 * maxSearches},
	} {
		t.Run(name, func(t *testing.T) {
			windows, searches := count(t, test.windows)
			verdict := windows.At(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
			if verdict.Allowed || !verdict.Next.IsZero() || verdict.Window == "" {
				t.Errorf("verdict = %+v, want never", verdict)
			}
			if *searches > test.most {
				t.Errorf("%d searches, want at most %d", *searches, test.most)
			}
		})
	}
}

// A schedule is searched once for an opening in years, and not once for each change of the zone's clocks until then.
func TestClockChangesNeedNoSearch(t *testing.T) {
	windows, searches := count(t, []Window{
		{Name: "leap", Kind: Allow, Schedule: "0 0 29 2 *", Duration: time.Hour, TimeZone: "Europe/Berlin"},
	})
	verdict := windows.At(time.Date(2025, time.March, 1, 12, 0, 0, 0, time.UTC))
	if want := time.Date(2028, time.February, 28, 23, 0, 0, 0, time.UTC); !verdict.Next.Equal(want) {
		t.Errorf("verdict = %+v, want %s", verdict, want)
	}
	if *searches > 3 {
		t.Errorf("%d searches, want one for what is open, and one for what opens", *searches)
	}
}

func BenchmarkManyWindows(b *testing.B) {
	every := Window{Name: "every", Kind: Deny, Schedule: "* * * * *", Duration: time.Minute}
	for name, window := range map[string]Window{
		"rare":     {Kind: Deny, Schedule: "59 23 29 2 *", Duration: time.Minute, TimeZone: "Europe/Berlin"},
		"frequent": {Kind: Deny, Schedule: "*/2 * * * *", Duration: time.Minute, TimeZone: "Europe/Berlin"},
		"long":     {Kind: Deny, Schedule: "* * 29 2 *", Duration: 744 * time.Hour, TimeZone: "Europe/Berlin"},
		"allowing": {Kind: Allow, Schedule: "*/2 * * * *", Duration: time.Minute, TimeZone: "Europe/Berlin"},
	} {
		compiled, errs := Compile(append(slices.Repeat([]Window{window}, 49), every), field.NewPath("w"))
		if len(errs) > 0 {
			b.Fatal(errs.ToAggregate())
		}
		now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				compiled.At(now)
			}
		})
	}
}
