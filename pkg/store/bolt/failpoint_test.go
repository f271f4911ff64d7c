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

// TestKilledAtStep kills a process that writes, before and after the commit of a batch.
func TestKilledAtStep(t *testing.T) {
	t.Parallel() // It mostly waits for other processes.
	repeatFor(t, 1, func(random *rand.Rand) {
		for _, step := range []string{"store-committing", "store-committed"} {
			t.Run(step, func(t *testing.T) { killAtStep(t, random, step) })
		}
	})
}

func killAtStep(t *testing.T, random *rand.Rand, step string) {
	path := filepath.Join(t.TempDir(), "store.db")
	acknowledged := map[string]int64{}
	for range 3 {
		times := 1 + random.IntN(30)
		const never = 1 << 30
		if !killWriter(t, path, never, acknowledged, crashClose+"=1", fmt.Sprintf("SLIPSTREAM_FAILPOINTS=%s=kill@%d", step, times)) {
			t.Fatalf("failpoint %s was not reached", step)
		}
		// The next process opens a file that was not closed.
		killWriter(t, path, 50, acknowledged)
		e := reopen(t, path)
		checkAcknowledged(t, e, acknowledged)
		checkHistory(t, e, acknowledged)
		checkWhole(t, e)
		checkPages(t, e)
		closeEngine(t, e)
	}
}
