// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncwindow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/controller/syncwindow"
)

func window(name string, kind syncwindow.Kind, schedule string, duration time.Duration, zone string) syncwindow.Window {
	return syncwindow.Window{Name: name, Kind: kind, Schedule: schedule, Duration: duration, TimeZone: zone}
}

// compile compiles a window.
func compile(t *testing.T, windows ...syncwindow.Window) syncwindow.Windows {
	t.Helper()
	compiled, errs := syncwindow.Compile(windows, field.NewPath("spec", "syncWindows"))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return compiled
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func TestAt(t *testing.T) {
	const hour = time.Hour
	nightly := window("nightly", syncwindow.Allow, "0 22 * * *", 8*hour, "")
	noon := window("noon", syncwindow.Allow, "0 12 * * 1-5", hour, "")
	freeze := window("freeze", syncwindow.Deny, "0 0 24 12 *", 8*24*hour, "")
	release := window("release", syncwindow.Deny, "30 22 * * 5", hour, "")
	always := window("always", syncwindow.Deny, "* * * * *", time.Minute, "")
	berlin := window("berlin", syncwindow.Allow, "0 18 * * *", hour, "Europe/Berlin")
	tests := []struct {
		name    string
		windows []syncwindow.Window
		now     string
		next    string // empty if syncs are allowed
		says    string
	}{
		{"no windows", nil, "2026-11-21T12:00:00Z", "", ""},
		{"open since it opened", []syncwindow.Window{nightly}, "2026-11-21T22:00:00Z", "", ""},
		{"open past midnight", []syncwindow.Window{nightly}, "2026-11-21T05:59:59Z", "", ""},
		{"closed when it closes", []syncwindow.Window{nightly}, "2026-11-21T06:00:00Z", "2026-11-21T22:00:00Z", "window nightly opens 22:00 UTC"},
		{
			"closed a moment before it opens", []syncwindow.Window{nightly},
			"2026-11-21T21:59:59.999Z", "2026-11-21T22:00:00Z", "window nightly opens 22:00 UTC",
		},
		{"either", []syncwindow.Window{nightly, noon}, "2026-11-20T12:30:00Z", "", ""},
		{
			"the one that opens first", []syncwindow.Window{nightly, noon},
			"2026-11-20T07:00:00Z", "2026-11-20T12:00:00Z", "window noon opens 12:00 UTC",
		},
		{"on another day", []syncwindow.Window{noon}, "2026-11-20T13:00:00Z", "2026-11-23T12:00:00Z", "window noon opens Mon 12:00 UTC"},
		{"denied", []syncwindow.Window{release}, "2026-11-20T22:45:00Z", "2026-11-20T23:30:00Z", "window release closes 23:30 UTC"},
		{"not denied any more", []syncwindow.Window{release}, "2026-11-20T23:30:00Z", "", ""},
		{
			"denied while allowed", []syncwindow.Window{nightly, release},
			"2026-11-20T22:45:00Z", "2026-11-20T23:30:00Z", "window release closes 23:30 UTC",
		},
		{
			"denied until it would be closed", []syncwindow.Window{noon, freeze},
			"2026-12-24T12:00:00Z", "2027-01-01T12:00:00Z", "window noon opens 2027-01-01 12:00 UTC",
		},
		{
			"denied for good", []syncwindow.Window{nightly, always}, "2026-12-24T12:00:00Z",
			"never", "window always lets nothing begin as far as can be seen ahead",
		},
		{
			"in the time zone of the window", []syncwindow.Window{berlin},
			"2026-11-21T12:00:00Z", "2026-11-21T17:00:00Z", "window berlin opens 18:00 CET",
		},
		{
			"whose clocks are changed", []syncwindow.Window{berlin}, "2026-07-21T12:00:00Z",
			"2026-07-21T16:00:00Z", "window berlin opens 18:00 CEST",
		},
		{"tomorrow there", []syncwindow.Window{berlin}, "2026-11-21T23:30:00+01:00", "2026-11-22T17:00:00Z", "window berlin opens Sun 18:00 CET"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			now := at(t, test.now)
			verdict := compile(t, test.windows...).At(now)
			if verdict.Allowed != (test.next == "") {
				t.Fatalf("got %+v", verdict)
			}
			switch {
			case verdict.Allowed && !verdict.Next.IsZero(), test.next == "never" && !verdict.Next.IsZero():
				t.Errorf("got %+v", verdict)
			case !verdict.Allowed && test.next != "never" && !verdict.Next.Equal(at(t, test.next)):
				t.Errorf("next = %[2]v, want %[1]s", test.next, verdict)
			}
			if got := verdict.Message(now); got != test.says {
				t.Errorf("reason = %[2]q, want %[1]q", test.says, got)
			}
		})
	}
}

// TestDaylightSaving checks every minute of hours with clock changes, in zones that change at two o'clock, at midnight, by half an hour and
// by a day. It compares the results with a simple search through the minutes.
func TestDaylightSaving(t *testing.T) {
	changes := []struct{ zone, from string }{
		{"Europe/Berlin", "2026-03-29T00:00:00+01:00"},
		{"Europe/Berlin", "2026-10-25T00:00:00+02:00"},
		{"America/Sao_Paulo", "2018-11-03T22:00:00-03:00"},
		{"America/Sao_Paulo", "2018-02-17T21:00:00-02:00"},
		{"Australia/Lord_Howe", "2026-10-04T00:00:00+10:30"},
		{"Australia/Lord_Howe", "2026-04-05T00:00:00+11:00"},
		{"Pacific/Apia", "2011-12-29T22:00:00-10:00"},
		{"Europe/Berlin", "2072-12-30T23:00:00+01:00"}, // where ZoneBounds is wrong
		{"Europe/Berlin", "2072-12-31T22:00:00+01:00"},
	}
	schedules := []string{"30 2 * * *", "10 0 * * *", "0 3 * * *", "*/20 1,2 * * *", "15 * * * *", "@daily"}
	for _, change := range changes {
		zone, err := time.LoadLocation(change.zone)
		if err != nil {
			t.Fatal(err)
		}
		from := at(t, change.from).In(zone)
		for _, schedule := range schedules {
			t.Run(change.zone+" "+change.from[:10]+" "+schedule, func(t *testing.T) {
				const duration = 25 * time.Minute
				windows := compile(t, window("w", syncwindow.Allow, schedule, duration, change.zone))
				opened := opens(t, schedule, from.Add(-duration), from.Add(26*time.Hour))
				for now := from; now.Before(from.Add(5 * time.Hour)); now = now.Add(time.Minute) {
					want, next := expect(opened, duration, now)
					got := windows.At(now)
					if got.Allowed != want || !want && !next.IsZero() && !got.Next.Equal(next) {
						t.Fatalf("at %[1]s: got %+[4]v, want %[2]v, next %[3]s", now, want, next, got)
					}
				}
			})
		}
	}
}

// opens returns the minutes at which a schedule opens a window: those that match it, and those after skipped minutes that match it.
func opens(t *testing.T, schedule string, from, until time.Time) []time.Time {
	t.Helper()
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		t.Fatal(err)
	}
	var out []time.Time
	for now := from; now.Before(until); now = now.Add(time.Minute) {
		first, last := face(now.Add(-time.Minute)).Add(time.Minute), face(now)
		if last.Before(first) {
			first = last // the clock was set back
		}
		if !parsed.Next(first.Add(-time.Second)).After(last) {
			out = append(out, now)
		}
	}
	return out
}

func face(at time.Time) time.Time {
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
}

// expect returns whether a window is open, and otherwise when it opens next.
func expect(opened []time.Time, duration time.Duration, now time.Time) (open bool, next time.Time) {
	for _, when := range opened {
		if when.After(now) {
			return false, when
		}
		if now.Before(when.Add(duration)) {
			return true, time.Time{}
		}
	}
	return false, time.Time{}
}

func TestCompileErrors(t *testing.T) {
	tests := []struct {
		name       string
		change     func(*syncwindow.Window)
		path, says string
	}{
		{"a long schedule", func(w *syncwindow.Window) { w.Schedule = strings.Repeat("1,", 256) + "1 * * * *" }, "w[0].schedule", "512 bytes"},
		{"no schedule", func(w *syncwindow.Window) { w.Schedule = "" }, "w[0].schedule", "five fields of cron"},
		{"six fields", func(w *syncwindow.Window) { w.Schedule = "0 0 22 * * *" }, "w[0].schedule", "five fields of cron"},
		{"an hour that is none", func(w *syncwindow.Window) { w.Schedule = "0 25 * * *" }, "w[0].schedule", "above maximum (23)"},
		{"a day that never comes", func(w *syncwindow.Window) { w.Schedule = "0 0 30 2 *" }, "w[0].schedule", "no month has that day"},
		{"a time zone in the schedule", func(w *syncwindow.Window) { w.Schedule = "TZ=UTC 0 22 * * *" }, "w[0].schedule", "there is timeZone"},
		{"a broken one", func(w *syncwindow.Window) { w.Schedule = "CRON_TZ=" }, "w[0].schedule", "there is timeZone"},
		{"from when the server starts", func(w *syncwindow.Window) { w.Schedule = "@every 1h" }, "w[0].schedule", "must not be @every"},
		{"an unknown name", func(w *syncwindow.Window) { w.Schedule = "@fortnightly" }, "w[0].schedule", "@weekly"},
		{"an unknown zone", func(w *syncwindow.Window) { w.TimeZone = "Europe/Atlantis" }, "w[0].timeZone", "such as Europe/Berlin"},
		{"the machine's zone", func(w *syncwindow.Window) { w.TimeZone = "local" }, "w[0].timeZone", "such as Europe/Berlin"},
		{"a file", func(w *syncwindow.Window) { w.TimeZone = "../UTC" }, "w[0].timeZone", "such as Europe/Berlin"},
		{"too short", func(w *syncwindow.Window) { w.Duration = 59 * time.Second }, "w[0].duration", "at least 1m and at most 744h"},
		{"too long", func(w *syncwindow.Window) { w.Duration = 745 * time.Hour }, "w[0].duration", "at least 1m and at most 744h"},
		{"no kind", func(w *syncwindow.Window) { w.Kind = "" }, "w[0].kind", `"Allow", "Deny"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := window("nightly", syncwindow.Allow, "0 22 * * 1-5", 8*time.Hour, "Europe/Berlin")
			test.change(&w)
			_, errs := syncwindow.Compile([]syncwindow.Window{w}, field.NewPath("w"))
			if len(errs) != 1 || errs[0].Field != test.path || !strings.Contains(errs[0].Error(), test.says) {
				t.Errorf("errors = %[3]v, want one at %[1]s with %[2]q", test.path, test.says, errs)
			}
		})
	}
}

// FuzzWindows checks that every window is either rejected or can be evaluated.
func FuzzWindows(f *testing.F) {
	for _, schedule := range []string{"0 22 * * 1-5", "@daily", "*/0 * * * *", "1-0 * * * *", "TZ=", "* * 31 2 *", "? ? ? ? ?", "0 0 29 2 *"} {
		f.Add(schedule, "Europe/Berlin", int64(8*time.Hour), int64(1774742400))
	}
	f.Fuzz(func(t *testing.T, schedule, zone string, duration, seconds int64) {
		w := window("w", syncwindow.Allow, schedule, time.Duration(duration), zone)
		windows, errs := syncwindow.Compile([]syncwindow.Window{w}, field.NewPath("w"))
		if len(errs) > 0 {
			return
		}
		now := time.Unix(seconds%4e9, 0)
		verdict := windows.At(now)
		if verdict.Allowed || verdict.Next.IsZero() {
			return
		}
		if !windows.At(verdict.Next).Allowed {
			t.Errorf("%q in %s is not open at the time of %+v", schedule, zone, verdict)
		}
	})
}

func BenchmarkDeniedForGood(b *testing.B) {
	windows, errs := syncwindow.Compile([]syncwindow.Window{
		window("always", syncwindow.Deny, "* * * * *", 744*time.Hour, "Europe/Berlin"),
		window("nightly", syncwindow.Allow, "0 22 * * *", time.Hour, "Europe/Berlin"),
	}, field.NewPath("w"))
	if len(errs) > 0 {
		b.Fatal(errs.ToAggregate())
	}
	now := time.Unix(1774742400, 0)
	for b.Loop() {
		windows.At(now)
	}
}
