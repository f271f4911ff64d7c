// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

const (
	// minHold and maxHold bound how long faults last.
	minHold, maxHold = 2 * time.Second, 15 * time.Second
	// lull is how long users work without a fault.
	lull = 4 * time.Second
	// restEvery is the number of rounds of faults between two rests.
	restEvery = 2
)

// briefFaults are those of a short run, in pairs that last at the same time.
var briefFaults = [][]string{
	{"remote unreachable", "pipeline receiver fails"},
	{"watches expire", "notification receiver fails"},
	{"server killed"},
}

// run is the course of a test.
type run struct {
	soak    *soak
	work    *work
	random  *rand.Rand
	samples *samples
	// counts are the numbers of faults by name.
	counts map[string]int
	rows   []string
}

// brief lets a few faults happen once.
func (r *run) brief(t *testing.T) {
	t.Helper()
	all := r.soak.faults()
	for _, names := range briefFaults {
		var chosen []fault
		for _, name := range names {
			at := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
			chosen = append(chosen, all[at])
		}
		r.round(t, chosen, minHold)
		pauseFor(t.Context(), lull)
	}
	r.rest(t)
}

// long lets random faults happen. The server ends only in the first fifth and in the last tenth: one process lives through the time between,
// and its samples can be compared.
func (r *run) long(t *testing.T, duration time.Duration) {
	t.Helper()
	started := time.Now()
	for round := 1; ; round++ {
		passed := time.Since(started)
		if passed >= duration {
			break
		}
		possible := r.soak.faults()
		if passed > duration/5 && passed < duration*9/10 {
			possible = slices.DeleteFunc(possible, func(f fault) bool { return f.part == serverPart })
		}
		r.round(t, r.choose(possible), minHold+time.Duration(r.random.Int64N(int64(maxHold-minHold))))
		pauseFor(t.Context(), lull)
		if round%restEvery == 0 {
			r.rest(t)
		}
	}
}

// choose returns one or two faults of different parts.
func (r *run) choose(possible []fault) (chosen []fault) {
	for range 1 + r.random.IntN(2) {
		f := possible[r.random.IntN(len(possible))]
		if !slices.ContainsFunc(chosen, func(other fault) bool { return other.part == f.part }) {
			chosen = append(chosen, f)
		}
	}
	return chosen
}

// round begins faults, lets them last, and undoes them, that of the server last.
func (r *run) round(t *testing.T, chosen []fault, hold time.Duration) {
	t.Helper()
	slices.SortStableFunc(chosen, func(a, b fault) int { return number(a.part == serverPart) - number(b.part == serverPart) })
	undos := make([]func(), len(chosen))
	for i, each := range chosen {
		t.Logf("%s %s", stamp(time.Now()), each.name)
		r.counts[each.name]++
		undos[i] = each.begin(t)
	}
	pauseFor(t.Context(), hold)
	for i, undo := range undos {
		if undo != nil {
			undo()
			t.Logf("%s end of: %s", stamp(time.Now()), chosen[i].name)
		}
	}
}

// rest interrupts the work until everything is equal, and takes a sample.
func (r *run) rest(t *testing.T) {
	t.Helper()
	began := time.Now()
	resume := r.work.interrupt()
	defer resume()
	r.soak.waitEqual(t, "at rest")
	t.Logf("%s everything is equal after %s", stamp(time.Now()), time.Since(began).Round(time.Second/10))
	r.samples.take(t, r.soak)
}

// row adds a line to the report.
func (r *run) row(name string, value any) {
	r.rows = append(r.rows, fmt.Sprintf("%s\t%v", name, value))
}

// report logs the end state.
func (r *run) report(t *testing.T) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(r.counts)) {
		r.row("fault: "+name, r.counts[name])
	}
	r.rows = append(r.rows, r.samples.check(t)...)
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range r.rows {
		_, _ = fmt.Fprintln(table, row)
	}
	_ = table.Flush()
	t.Logf("\n%s", text.String())
}

// stamp returns the time of day.
func stamp(at time.Time) string { return at.UTC().Format("15:04:05.000") }

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}
