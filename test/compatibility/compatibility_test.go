// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package compatibility

import (
	"flag"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/upgradetest"
)

var previousFlag = flag.String("previous", "", "commit of the earlier version, instead of that in test/testkit/upgradetest/previous")

// TestCompatibility lets the server of an earlier version store objects of all kinds, and replaces it by that of this tree.
func TestCompatibility(t *testing.T) {
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	base := upgradetest.Previous(t, root, *previousFlag)
	earlier, current := server(t, base), server(t, root)
	for _, storage := range []devcluster.Storage{devcluster.StorageBbolt, devcluster.StorageEtcd3} {
		t.Run(string(storage), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, earlier, devcluster.Options{
				Storage: storage, Manifest: filepath.Join(base, "test/devcluster/install.yaml"),
			})
			s.fill(t)
			before := s.store(t)
			backup := filepath.Join(t.TempDir(), "backup.tar")
			if storage == devcluster.StorageBbolt {
				run(t, earlier, "backup", "--data-dir", s.Env(devcluster.EnvDataDir), "--output", backup)
			}
			s.leavePending(t)

			s.replace(t, current)
			before.expectStored(t)
			before.expectWatches(t)
			before.expectUnchanged(t)
			s.expectPendingWork(t)
			s.expectNewWork(t)

			if storage == devcluster.StorageBbolt {
				stop(t, s.AdminCluster)
				run(t, current, "restore", "--data-dir", s.Env(devcluster.EnvDataDir), backup)
				start(t, s.AdminCluster)
				before.expectRestored(t)
			}
		})
	}
}

// server builds the server in a folder with its source.
func server(t *testing.T, root string) string {
	t.Helper()
	program, err := programs.Product(t.Context(), root, "cmd/slipstream")
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// run runs a command of the server's program.
func run(t *testing.T, program string, arguments ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", arguments, err, out)
	}
}

func stop(t *testing.T, s *mirrortest.AdminCluster) {
	t.Helper()
	if err := s.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, s *mirrortest.AdminCluster) {
	t.Helper()
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}
