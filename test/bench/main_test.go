// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// output is an output of go test, with progress, results and other lines.
var output = strings.ReplaceAll(`goos: linux
BenchmarkCommit/files=1000/changed=200
BenchmarkCommit/files=1000/changed=200-P     5   123456 ns/op   0.25 build/native
    print.go:225: starting etcd ...
BenchmarkCommit/files=50000/changed=200-P    5   123456 ns/op   0.5 build/native
BenchmarkMirror/Seed/objects=10000-P         1   8.118 get-s   2.144 seed-s
--- FAIL: BenchmarkMirror/Idle
PASS
`, "-P", processors())

func TestTable(t *testing.T) {
	results, err := parse(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	verdicts := judge(results, []target{
		atMost("building", "^Commit/", "build/native", 0.4),
		atMost("building, as is known", "^Commit/", "build/native", 0.4).accepting(0.5),
		atMost("building, nearly", "^Commit/", "build/native", 0.47),
		atMost("building, exactly", "^Commit/", "build/native", 0.47).exactly(),
		atMost("building the small one", "^Commit/files=1000/", "build/native", 0.4),
		atLeast("slowness", "^Mirror/Seed/", "get-s", 8),
		atMost("nothing", "^Nothing$", "get-s", 8),
	})
	var table strings.Builder
	if err := printTable(&table, verdicts, results); err != nil {
		t.Fatal(err)
	}
	want := `TARGET                  MEASURED     WANTED   
building                0.25 to 0.5  <= 0.4   FAILED
building, as is known   0.25 to 0.5  <= 0.4   missed, accepted until 0.5
building, nearly        0.25 to 0.5  <= 0.47  missed, accepted until 0.517
building, exactly       0.25 to 0.5  <= 0.47  FAILED
building the small one  0.25         <= 0.4   met
slowness                8.12         >= 8     met
nothing                 -            <= 8     not measured

BENCHMARK                       FIGURES
Commit/files=1000/changed=200   123456 ns/op, 0.25 build/native
Commit/files=50000/changed=200  123456 ns/op, 0.5 build/native
Mirror/Seed/objects=10000       8.12 get-s, 2.14 seed-s
`
	if got := table.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	for i, want := range []bool{true, false, false, true, false, false, false} {
		if got := failed(verdicts[i:i+1], false); got != want {
			t.Errorf("%s: failed = %t, want %t", verdicts[i].what, got, want)
		}
	}
	if !failed(verdicts[len(verdicts)-1:], true) {
		t.Error("the check of everything accepts that nothing was measured")
	}
}

func TestParseInvalidResults(t *testing.T) {
	if _, err := parse(strings.NewReader("BenchmarkX 1 many ns/op\n")); err == nil {
		t.Error("a result without a number was accepted")
	}
}

// TestTargetsDistinguishSizes checks that expressions match only the intended benchmarks.
func TestTargetsDistinguishSizes(t *testing.T) {
	matches := func(what, name string) bool {
		for _, each := range targets {
			if each.what == what {
				return each.benchmarks.MatchString(name)
			}
		}
		t.Fatalf("no target %q", what)
		return false
	}
	const all, largest = "build and push / fast-import + git push", "the same, 50 000 files, 1000 commits"
	for name, want := range map[string]string{
		"Commit/files=1000/commits=1000/changed=1":  all,
		"Commit/files=50000/commits=100/changed=10": all,
		"Commit/files=50000/commits=20/changed=200": all,
		"Commit/files=50000/commits=1/changed=1":    all,
		"Commit/files=50000/commits=1000/changed=1": largest,
	} {
		if matches(all, name) != (want == all) || matches(largest, name) != (want == largest) {
			t.Errorf("%s: must match only the target %q", name, want)
		}
	}
}

// TestOnlyBenchmarksWithTargets checks which benchmarks the check runs.
func TestOnlyBenchmarksWithTargets(t *testing.T) {
	expression := regexp.MustCompile(measuring(targets))
	for name, want := range map[string]bool{
		"BenchmarkMirror": true, "BenchmarkCommit": true, "BenchmarkWorkTree": true, "BenchmarkContended": false, "BenchmarkSimulated": false,
	} {
		if expression.MatchString(name) != want {
			t.Errorf("%s: must be run = %t", name, want)
		}
	}
}

func TestTargetsAreDistinct(t *testing.T) {
	seen := map[string]*regexp.Regexp{}
	for _, each := range targets {
		key := fmt.Sprint(each.benchmarks, " ", each.unit)
		if seen[key] != nil {
			t.Errorf("two targets for %s", key)
		}
		seen[key] = each.benchmarks
	}
}
