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
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/mirrortest"
)

// smallDisk is a server whose stores have a disk of their own.
type smallDisk struct{ program string }

// newSmallDisk needs a user namespace to mount the disk in.
func newSmallDisk(t *testing.T, mebibytes int) smallDisk {
	t.Helper()
	dir := t.TempDir()
	probe := exec.CommandContext(t.Context(), "unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", dir)
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("no disk of its own: %v: %s", err, out)
	}
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	program, err := programs.Product(t.Context(), root, "cmd/slipstream")
	if err != nil {
		t.Fatal(err)
	}
	wrapped := filepath.Join(dir, "slipstream")
	writeFile(t, wrapped, fmt.Sprintf(`#!/bin/sh
for argument; do case "$argument" in --data-dir=*) folder=${argument#*=} ;; esac; done
exec unshare -Urm sh -c 'mount -t tmpfs -o size=%dm tmpfs "$0" && exec %s "$@"' "$folder" "$@"
`, mebibytes, program))
	return smallDisk{wrapped}
}

// fill takes what is left of a disk, and returns what gives it back.
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
		t.Errorf("filling the disk: %v", err)
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

// The disk of the server's stores is full in the middle of changes. That of the Git server is TestMirror's.
func TestDiskIsFull(t *testing.T) {
	s := newStage(t, devcluster.Options{ServerProgram: newSmallDisk(t, 128).program})
	m, client := s.wounded(t, "disk")
	// The server alone sees its disk where it is; others see it through the process.
	free := fill(t, filepath.Join("/proc", s.Env(devcluster.EnvServerPIDs), "root", s.Env(devcluster.EnvDataDir)))
	m.burst(t, client, "full")
	mirrortest.Eventually(t, "the log says that changes wait", func(context.Context) error {
		log, err := os.ReadFile(s.Env(devcluster.EnvServerLog))
		if err == nil && !strings.Contains(string(log), "Failed to write outbox") {
			err = errors.New("it does not")
		}
		return err
	})
	ready := func(ctx context.Context, path string) (string, error) {
		return s.Administrator.Run(ctx, "get", "--raw", path, "--server="+s.Env(devcluster.EnvServerURL), "--insecure-skip-tls-verify")
	}
	if said, err := ready(t.Context(), "/readyz/store-space"); !strings.Contains(fmt.Sprint(err), "disk of the store is full") {
		t.Errorf("readyz says %s (%v)", said, err)
	}
	if said, err := ready(t.Context(), "/readyz?exclude=store-records&exclude=store-space"); err != nil {
		t.Errorf("the probe of the chart gets %s (%v)", said, err)
	}
	free()
	m.healed(t, client)
	mirrortest.Eventually(t, "readyz says that there is space", func(ctx context.Context) error {
		_, err := ready(ctx, "/readyz")
		return err
	})
}
