// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// smallDisk is a server program that mounts a small disk of its own for its stores.
type smallDisk struct{ program string }

// newSmallDisk returns a smallDisk. It skips the test if the disk cannot be mounted in a user namespace.
func newSmallDisk(t *testing.T, mebibytes int) smallDisk {
	t.Helper()
	dir := t.TempDir()
	probe := exec.CommandContext(t.Context(), "unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", dir)
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("cannot mount a disk in a user namespace: %v: %s", err, out)
	}
	program := clustertest.Program(t, "cmd/slipstream")
	wrapped := filepath.Join(dir, "slipstream")
	writeFile(t, wrapped, fmt.Sprintf(`#!/bin/sh
for argument; do case "$argument" in --data-dir=*) folder=${argument#*=} ;; esac; done
exec unshare -Urm sh -c 'mount -t tmpfs -o size=%dm tmpfs "$0" && exec %s "$@"' "$folder" "$@"
`, mebibytes, program))
	return smallDisk{wrapped}
}

// fill writes until the disk is full. It returns a function that frees the space.
func fill(t *testing.T, folder string) (free func()) {
	t.Helper()
	path := filepath.Join(folder, "filling")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 4096); err == nil; {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("fill the disk: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// TestFullDisk fills the disk of the server's stores during changes. TestMirror covers a full disk of the Git server.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{ServerProgram: newSmallDisk(t, 128).program})
	m, client := s.newFaultMirror(t, "disk")
	// The disk is mounted for the server only; other processes access it through /proc.
	free := fill(t, filepath.Join("/proc", s.Env(devcluster.EnvServerPIDs), "root", s.Env(devcluster.EnvDataDir)))
	bursts := 0
	mirrortest.Eventually(t, "the log has the failure", func(context.Context) error {
		m.burst(t, client, fmt.Sprint("full", bursts)) // The files have free pages, which are used first.
		bursts++
		log, err := os.ReadFile(s.Env(devcluster.EnvServerLog))
		if err == nil && !regexp.MustCompile(`Failed to write buffered rows, retrying.*table="outbox"`).Match(log) {
			err = errors.New("no failure to write the outbox is logged")
		}
		return err
	})
	ready := s.ReadServer
	if out, err := ready(t.Context(), "/readyz/store-space"); !strings.Contains(fmt.Sprint(err), "disk of the store is full") {
		t.Errorf("/readyz/store-space returned %s (%v)", out, err)
	}
	if out, err := ready(t.Context(), "/readyz?exclude=store-records&exclude=store-space"); err != nil {
		t.Errorf("readiness probe of the chart returned %s (%v)", out, err)
	}
	free()
	m.checkRecovered(t, client)
	mirrortest.Eventually(t, "readyz reports free space", func(ctx context.Context) error {
		_, err := ready(ctx, "/readyz")
		return err
	})
}
