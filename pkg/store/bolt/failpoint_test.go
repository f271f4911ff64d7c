// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package bolt_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// TestKilledAtStep kills a process that writes, or opens and closes its file, at each
// step that the code names.
func TestKilledAtStep(t *testing.T) {
	repeatFor(t, 1, func(random *rand.Rand) {
		for _, step := range []string{
			"journal-created", "entry-appended", "entry-committed",
			"checkpoint-begun", "checkpoint-synced", "checkpoint-written",
			"store-synced", "store-closed",
			"store-restoring", "store-replaying", "store-replayed",
		} {
			t.Run(step, func(t *testing.T) { killAtStep(t, random, step) })
		}
	})
}

func killAtStep(t *testing.T, random *rand.Rand, step string) {
	path := filepath.Join(t.TempDir(), "store.db")
	acknowledged := map[string]int64{}
	for range 3 {
		for attempt := 1; !reachStep(t, random, path, step, acknowledged); attempt++ {
			if attempt == 10 {
				t.Fatal("the step is not reached")
			}
		}
		// The next one opens it without an end in between.
		killWriter(t, path, 50, acknowledged)
		e := reopen(t, path)
		checkAcknowledged(t, e, acknowledged)
		checkHistory(t, e, acknowledged)
		checkWhole(t, e)
		checkPages(t, e)
		closeEngine(t, e)
	}
}

// reachStep has a writer killed at a step. It returns false if the writer did not get there: a file that was not closed may, by
// chance, have nothing that is to be replayed.
func reachStep(t *testing.T, random *rand.Rand, path, step string, acknowledged map[string]int64) bool {
	t.Helper()
	// What the step is about: a file that was not closed.
	killWriter(t, path, 50+random.IntN(100), acknowledged)
	times := 1
	switch step {
	case "entry-appended", "entry-committed":
		times = 1 + random.IntN(30)
	case "checkpoint-begun", "checkpoint-synced", "checkpoint-written":
		times = 1 + random.IntN(5)
	}
	const never = 1 << 30
	return killWriter(t, path, never, acknowledged, crashClose+"=1", fmt.Sprintf("SLIPSTREAM_FAILPOINTS=%s=kill@%d", step, times))
}
