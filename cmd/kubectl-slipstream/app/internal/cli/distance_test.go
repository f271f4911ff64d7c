// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestSimilar(t *testing.T) {
	long := strings.Repeat("a", 253)
	for name, test := range map[string]struct {
		wrong string
		names []string
		want  []string
	}{
		"the most similar first": {"alise", []string{"bob", "alike", "alice", "alien", "alisee", "alise"}, []string{"alike", "alice", "alisee"}},
		"other lengths":          {"a", []string{"abc", "abcd", "ab"}, []string{"ab", "abc"}},
		"the longest":            {long, []string{"b" + long[1:]}, []string{"b" + long[1:]}},
		"no name":                {long + "a", []string{long}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := similar(test.wrong, test.names); !slices.Equal(got, test.want) {
				t.Errorf("similar(%q) = %q", test.wrong, got)
			}
		})
	}
}
