// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// smallDisk names, to a child process, the folder to mount a small disk on.
const smallDisk = "SLIPSTREAM_TEST_SMALL_DISK"

// onSmallDisk runs a test in a process of its own, with a disk of so many bytes. It needs a user namespace to mount one, and
// leaves the test out where there is none.
func onSmallDisk(t *testing.T, bytes int, test func(folder string)) {
	t.Helper()
	if folder := os.Getenv(smallDisk); folder != "" {
		if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
			t.Skipf("mounting: %v", err)
		}
		test(folder)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), smallDisk+"="+t.TempDir())
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	output, err := child.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		t.Errorf("%v\n%s", err, output)
	case err != nil:
		t.Skipf("no user namespace: %v", err)
	case strings.Contains(string(output), "--- SKIP"):
		t.Skipf("no disk of its own:\n%s", output)
	}
}

// What does not fit on the disk stays in the API, the archive stays readable, and the next sweep goes on when there is room.
func TestFullDisk(t *testing.T) {
	onSmallDisk(t, 1<<20, func(disk string) { testFullDisk(t, disk) })
}

func testFullDisk(t *testing.T, disk string) {
	long := func(r *v1alpha1.SyncStatus) { r.Status.WorkloadNames = slices.Repeat([]string{"workload"}, 200) }
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 512<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStageIn(filepath.Join(disk, "archive"), append(many(300, long), policy())...)
	for range 2 {
		if err := s.sweeper().Sweep(t.Context()); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("error = %v, want no space", err)
		}
		left := s.left()
		if names := archivedNames(t, s.folder); len(names)+len(left) != 300 || len(left) == 0 || len(names) == 0 {
			t.Fatalf("%d records are archived and %d are left", len(names), len(left))
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.sweeper().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	names := archivedNames(t, s.folder)
	slices.Sort(names)
	if names = slices.Compact(names); len(names) != 300 || len(s.left()) > 0 {
		t.Errorf("%d records are archived and %d are left", len(names), len(s.left()))
	}
}
