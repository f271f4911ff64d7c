// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commits_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/commits"
)

// entries parses lines such as "main a 10-12 created": a destination, a commit, and the versions that it contains. The versions of a
// comparison are "-12".
func entries(lines ...string) (out []commits.Entry) {
	for i, line := range lines {
		words := strings.Fields(line)
		first, last, many := strings.Cut(words[2], "-")
		if !many {
			last = first
		}
		out = append(out, commits.Entry{
			First: first, Last: last, Created: strings.Contains(line, "created"), Removed: strings.Contains(line, "removed"),
			Commit: v1alpha1.MirroredCommit{
				CommitSummary:  v1alpha1.CommitSummary{SHA: words[1], Time: metav1.Unix(int64(i), 0)},
				DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: "ops", Name: words[0]},
			},
		})
	}
	return out
}

func TestMatch(t *testing.T) {
	for name, test := range map[string]struct {
		span  commits.Span
		lines []string
		want  string
	}{
		"no commits": {span: commits.Span{After: "10", To: "20"}},
		"one commit": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a 10", "main b 15", "main c 21"}, want: "b",
		},
		"one commit per change, newest first": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a 11", "main b 15", "main c 20"}, want: "c b a",
		},
		"a commit that ends with the previous record, and one that ends later": {
			span: commits.Span{After: "15", To: "20"}, lines: []string{"main a 11-15", "main b 11-16"}, want: "b",
		},
		"a later commit, and one that starts within the span": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a 18-30", "main b 31"}, want: "a",
		},
		"an ignored change before the span": {
			span: commits.Span{After: "10", From: "17", To: "20"}, lines: []string{"main a 12", "main b 17"}, want: "b",
		},
		"versions are numbers": {
			span: commits.Span{After: "9", To: "100"}, lines: []string{"main a 8", "main b 10", "main c 99"}, want: "c b",
		},
		"several destinations": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a 15", "more b 15", "rest c 9"}, want: "b a",
		},
		"a comparison within the span": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a -18"}, want: "a",
		},
		"a comparison that read the object after the span": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a -22", "main b -30"}, want: "a",
		},
		"a later comparison without a change": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a 15", "main b -15", "main c -30"}, want: "a",
		},
		"a removed file of an existing object": {
			span: commits.Span{After: "10", To: "20"}, lines: []string{"main a 15 removed"},
		},
		"the first record": {
			span:  commits.Span{To: "20"},
			lines: []string{"main a 5 created", "main b 8 removed", "main c 10 created", "main d 15", "main e 21"}, want: "d c",
		},
		"the first record, without a commit of the creation": {
			span: commits.Span{To: "20"}, lines: []string{"main a 5", "main b 15"}, want: "b a",
		},
		"a deletion": {
			span: commits.Span{After: "10"}, lines: []string{"main a 9", "main b 15", "main c 16 removed", "main d 20 created"}, want: "c b",
		},
		"a deletion that a comparison has found": {
			span: commits.Span{After: "10"}, lines: []string{"main a -30 removed"}, want: "a",
		},
		"a deletion, and the branch keeps the file": {
			span: commits.Span{After: "10"}, lines: []string{"main a 15", "main d 20"},
		},
		"versions that cannot be ordered": {
			span: commits.Span{From: "x", To: "y"}, lines: []string{"main a z"}, want: "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := entries(test.lines...)
			before := slices.Clone(given)
			var got []string
			for _, one := range test.span.Match(given) {
				got = append(got, one.Commit.SHA)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("matched commits = %v, want %q", got, test.want)
			}
			if !slices.Equal(given, before) {
				t.Error("Match has modified its argument")
			}
		})
	}
}

// TestEveryCommitIsMatched divides changes at random into commits and into records. Each commit must match the records whose changes it
// contains, and no others, in any order of commits.
func TestEveryCommitIsMatched(t *testing.T) {
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
			// The recorded version was read a little later, when only a status had changed since.
			span := commits.Span{After: fmt.Sprint(100 + after*10 + random.IntN(10)), To: fmt.Sprint(100 + to*10 + random.IntN(10))}
			var got, want []string
			for _, one := range span.Match(entries(lines...)) {
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
				t.Fatalf("changes %d to %d match %v, want %v: %q", after+1, to, got, want, lines)
			}
			after = to
		}
	}
}
