// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import "testing"

// TestCatalogs plays scenes, one after the other, on one stage. Each has namespaces of its own, and leaves the server as it
// was: running, with a wire that is joined and a short window.
func TestCatalogs(t *testing.T) {
	s := newStage(t)
	for _, scene := range []struct {
		name string
		play func(*stage, *testing.T)
	}{
		{"changes of a window are one record", (*stage).oneWindow},
		{"workloads of every kind are followed", (*stage).everyKind},
		{"an editor's change is recorded with their name", (*stage).edited},
		{"an editor must be allowed to read the source", (*stage).refused},
		{"a source that the server may not read says so", (*stage).hidden},
		{"a deleted workload is missing until an editor removes it", (*stage).missing},
		{"changes during a pause are one record", (*stage).paused},
		{"previews change nothing", (*stage).previewed},
		{"catalogs of one namespace have records of their own", (*stage).together},
		{"a catalog goes in the middle of a batch", (*stage).deleted},
		{"records name the commits that hold a change", (*stage).committed},
		{"a catalog goes back and forward", (*stage).rolledBack},
		{"records come to every state", (*stage).lived},
		{"Events tell of a catalog unless notices are stopped", (*stage).announced},
		{"records are archived before they go", (*stage).retained},
		{"records are archived in Git before they go", (*stage).archivedInGit},
		{"a restart records nothing but what has changed", (*stage).restarted},
		{"a watch that has expired records nothing but what has changed", (*stage).expired},
	} {
		t.Run(scene.name, func(t *testing.T) { scene.play(s, t) })
	}
}
