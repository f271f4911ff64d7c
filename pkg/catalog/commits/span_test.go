// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commits_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/catalog/commits"
	"github.com/configbutler/slipstream/pkg/store/commitindex"
)

// landings reads lines such as "main a 10-12 created": a destination, a commit, and the versions that it holds; those of a
// comparison are "-12".
func landings(lines ...string) (out []commitindex.Entry) {
	for i, line := range lines {
		words := strings.Fields(line)
		first, last, many := strings.Cut(words[2], "-")
		if !many {
			last = first
		}
		out = append(out, commitindex.Entry{
			First: first, Last: last, Created: strings.Contains(line, "created"), Removed: strings.Contains(line, "removed"),
			Commit: commitindex.Commit{
				Destination: types.NamespacedName{Namespace: "ops", Name: words[0]}, SHA: words[1], Time: time.Unix(int64(i), 0),
			},
		})
	}
	return out
}

func TestHeld(t *testing.T) {
	for name, test := range map[string]struct {
		span  commits.Span
		lines []string
		want  string
	}{
		"nothing has landed": {span: commits.Span{After: "10", To: "20"}},
		"one commit": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a 10", "main b 15", "main c 21"}, want: "b",
		},
		"as many as there were changes, the newest first": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a 11", "main b 15", "main c 20"}, want: "c b a",
		},
		"what was recorded before does not count, though it ended later": {
			span: commits.Span{After: "15", To: "20"}, lines: []string{"main a 11-15", "main b 11-16"}, want: "b",
		},
		"what is recorded later does not count, unless it began before": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a 18-30", "main b 31"}, want: "a",
		},
		"what does not matter to the catalog came first": {
			span: commits.Span{After: "10", From: "17", To: "20"}, lines: []string{"main a 12", "main b 17"}, want: "b",
		},
		"versions are numbers": {
			span: commits.Span{After: "9", To: "100"}, lines: []string{"main a 8", "main b 10", "main c 99"}, want: "c b",
		},
		"each destination has its own": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a 15", "more b 15", "rest c 9"}, want: "b a",
		},
		"a comparison within": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a -18"}, want: "a",
		},
		"a comparison that saw the object a little later": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a -22", "main b -30"}, want: "a",
		},
		"a later comparison brings nothing that the branch had": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a 15", "main b -15", "main c -30"}, want: "a",
		},
		"a file that was removed, because nobody selects it": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a 15 removed"},
		},
		"nothing was recorded before": {
			span: commits.Span{To: "20"}, lines: []string{"main a 5 created", "main b 8 removed", "main c 10 created", "main d 15", "main e 21"}, want: "d c",
		},
		"nothing was recorded before, and the beginning is not known": {
			span: commits.Span{To: "20"}, lines: []string{"main a 5", "main b 15"}, want: "b a",
		},
		"gone": {
			span: commits.Span{After: "10"}, lines: []string{"main a 9", "main b 15", "main c 16 removed", "main d 20 created"}, want: "c b",
		},
		"gone, as a comparison has found": {
			span: commits.Span{After: "10"}, lines: []string{"main a -30 removed"}, want: "a",
		},
		"gone, and the branch keeps it": {
			span: commits.Span{After: "10"}, lines: []string{"main a 15", "main d 20"},
		},
		"without an order nothing is left out but what is excluded": {
			span: commits.Span{From: "x", To: "y"}, lines: []string{"main a z"}, want: "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := landings(test.lines...)
			before := slices.Clone(given)
			var got []string
			for _, one := range test.span.Match(given) {
				got = append(got, one.Commit.SHA)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("held by %v, want %q", got, test.want)
			}
			if !slices.Equal(given, before) {
				t.Error("what was given has changed")
			}
		})
	}
}

// TestEveryCommitIsNamed divides changes at random into commits and into records. Each commit is named by the records whose
// changes it holds, and by no other, in whatever order commits are known.
func TestEveryCommitIsNamed(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		var lines []string
		var ends []int
		const changes = 30
		for first := 1; first <= changes; {
			last := min(first+random.IntN(4), changes)
			lines = append(lines, fmt.Sprintf("main %d %d-%d", last, 100+first*10, 100+last*10))
			ends = append(ends, last)
			first = last + 1
		}
		random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		for after := 0; after < changes; {
			to := min(after+1+random.IntN(6), changes)
			// What is recorded was read a little later, when nothing else had changed but a status.
			span := commits.Span{After: fmt.Sprint(100 + after*10 + random.IntN(10)), To: fmt.Sprint(100 + to*10 + random.IntN(10))}
			var got, want []string
			for _, one := range span.Match(landings(lines...)) {
				got = append(got, one.Commit.SHA)
			}
			first := 1
			for _, last := range ends {
				if last > after && first <= to {
					want = append([]string{fmt.Sprint(last)}, want...)
				}
				first = last + 1
			}
			if !slices.Equal(got, want) {
				t.Fatalf("changes %d to %d are held by %v, want %v: %q", after+1, to, got, want, lines)
			}
			after = to
		}
	}
}
