// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/smalldisk"
)

// TestFullDisk has a disk that is too small for the archive. The other records stay in the API, and the next sweep continues once there
// is space.
func TestFullDisk(t *testing.T) {
	smalldisk.Run(t, 1<<20, func(disk string) { testFullDisk(t, disk) })
}

func testFullDisk(t *testing.T, disk string) {
	long := func(r *v1alpha1.SyncStatus) { r.Status.WorkloadNames = slices.Repeat([]string{"workload"}, 200) }
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 512<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newFixtureIn(filepath.Join(disk, "archive"), append(many(300, long), policy())...)
	for range 2 {
		if err := s.sweeper().Sweep(t.Context()); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("error = %v, want no space", err)
		}
		left := s.remaining()
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
	if names = slices.Compact(names); len(names) != 300 || len(s.remaining()) > 0 {
		t.Errorf("%d records are archived and %d are left", len(names), len(s.remaining()))
	}
}
