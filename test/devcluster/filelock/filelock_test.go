// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package filelock_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/configbutler/slipstream/test/devcluster/filelock"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestAcquireWaitsForRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := filelock.Acquire(t.Context(), path)
	if err != nil {
		t.Fatalf("first lock: %v", err)
	}
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := filelock.Acquire(impatient, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("second lock while the first is held: got %v, want a deadline error", err)
	}
	if err := first.Release(); err != nil {
		t.Fatalf("release: %v", err)
	}
	second, err := filelock.Acquire(t.Context(), path)
	if err != nil {
		t.Fatalf("second lock after the first was released: %v", err)
	}
	if err := second.Release(); err != nil {
		t.Fatalf("release: %v", err)
	}
}

func TestAcquireInMissingFolder(t *testing.T) {
	if _, err := filelock.Acquire(t.Context(), filepath.Join(t.TempDir(), "missing", "lock")); err == nil {
		t.Error("got no error for a lock in a missing folder")
	}
}
