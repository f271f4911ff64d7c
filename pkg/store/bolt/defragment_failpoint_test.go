// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package bolt_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// crashDefragment is the environment variable with the file that a child process defragments.
const crashDefragment = "SLIPSTREAM_TEST_CRASH_DEFRAGMENT"

// TestDefragmentInChild is the child of TestKilledDefragment.
func TestDefragmentInChild(t *testing.T) {
	path := os.Getenv(crashDefragment)
	if path == "" {
		t.Skip("child process of TestKilledDefragment")
	}
	if _, err := bolt.Defragment(t.Context(), path); err != nil {
		t.Fatal(err)
	}
}

// TestKilledDefragment kills a process that defragments a file which was not closed. Either the old or the new file must
// remain, with every acknowledged write, and defragmenting it again must succeed.
func TestKilledDefragment(t *testing.T) {
	t.Parallel() // It mostly waits for other processes.
	repeatFor(t, 1, func(random *rand.Rand) {
		for _, step := range []string{"defragmented-copied", "defragmented-renamed"} {
			t.Run(step, func(t *testing.T) { killDefragment(t, random, step) })
		}
	})
}

func killDefragment(t *testing.T, random *rand.Rand, step string) {
	path := filepath.Join(t.TempDir(), "store.db")
	acknowledged := map[string]int64{}
	for range 2 {
		killWriter(t, path, 50+random.IntN(300), acknowledged)
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDefragmentInChild$")
		child.Env = append(os.Environ(), crashDefragment+"="+path, "SLIPSTREAM_FAILPOINTS="+step+"=kill")
		out, err := child.CombinedOutput()
		if status := child.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGKILL {
			t.Fatalf("child was not killed: %v\n%s", err, out)
		}
		checkSound(t, path)
		if _, err := bolt.Defragment(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		onlyFile(t, path)
		e := reopen(t, path)
		checkAcknowledged(t, e, acknowledged)
		checkHistory(t, e, acknowledged)
		checkWhole(t, e)
		checkPages(t, e)
		closeEngine(t, e)
	}
}

// checkSound fails if Inspect finds damage in the file.
func checkSound(t *testing.T, path string) {
	t.Helper()
	if _, err := bolt.Inspect(t.Context(), path); err != nil {
		t.Error(err)
	}
}
