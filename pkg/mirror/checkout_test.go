// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestNamesThatDifferInCaseAreCheckedOutAnywhere mirrors objects whose names a case-insensitive file system does not distinguish.
func TestNamesThatDifferInCaseAreCheckedOutAnywhere(t *testing.T) {
	s := newFixture(t)
	names := []string{"web", "Web", "WEB", "wEb", "web-a", "web-A"}
	for _, name := range names {
		s.cluster.put(configMap(name), name)
	}
	s.mirrored()
	files, err := s.files("main")
	if err != nil {
		t.Fatal(err)
	}
	folded := map[string]bool{}
	for path := range files {
		folded[strings.ToLower(path)] = true
	}
	if len(files) != len(names) || len(folded) != len(files) {
		t.Errorf("%d objects, %d files, %d ignoring case: %q", len(names), len(files), len(folded), slices.Sorted(maps.Keys(files)))
	}
	s.cluster.remove(configMap("Web"))
	s.mirrored()
}
