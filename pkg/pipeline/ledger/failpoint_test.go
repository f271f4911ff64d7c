// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package ledger_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
)

// crashFile is the store of a child process.
const crashFile = "SLIPSTREAM_TEST_LEDGER_FILE"

// TestDeliverInChild is the child process of TestKilled: it delivers two objects and the deletion of one of them.
func TestDeliverInChild(t *testing.T) {
	file := os.Getenv(crashFile)
	if file == "" {
		t.Skip("this is the child process of TestKilled")
	}
	s := newFixtureOn(t, bolttest.Open(t, file).KV, 0)
	has("a", "b")(s)
	gone("a")(s)
	batch("-a")(s)
	s.delivered()
}

func TestKilled(t *testing.T) {
	for step, after := range map[string][]step{
		"batch-frozen=kill":    {counts(0, 2, 0), batch("+a:1 +b:1"), numbered(1), delivered(), none, rowsOf("a", "b")},
		"batch-settled=kill":   {counts(2, 0, 0), none, now("a", 1), none, rowsOf("a", "b")},
		"batch-frozen=kill@2":  {counts(2, 1, 0), batch("-a"), numbered(2), delivered(), none, rowsOf("b")},
		"batch-settled=kill@2": {counts(1, 0, 0), none, rowsOf("b"), now("b", 2), batch("+b:2"), numbered(3)},
	} {
		t.Run(step, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "work.db")
			victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDeliverInChild$")
			victim.Env = append(os.Environ(), crashFile+"="+file, "SLIPSTREAM_FAILPOINTS="+step)
			out, err := victim.CombinedOutput()
			if status, ok := victim.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
				t.Fatalf("the process was not killed (%v): %s", err, out)
			}
			s := newFixtureOn(t, bolttest.Open(t, file).KV, 0)
			for _, do := range after {
				do(s)
			}
		})
	}
}

// numbered checks the sequence of the current batch.
func numbered(sequence int64) step {
	return func(s *fixture) {
		s.Helper()
		if s.handed.Sequence != sequence {
			s.Fatalf("batch = %+v, want sequence %d", s.handed, sequence)
		}
	}
}
