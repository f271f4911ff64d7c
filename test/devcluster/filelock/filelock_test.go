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
		t.Fatalf("first: %v", err)
	}
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := filelock.Acquire(impatient, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("second, while the first is held: want the end of its context, got %v", err)
	}
	if err := first.Release(); err != nil {
		t.Fatalf("releasing: %v", err)
	}
	second, err := filelock.Acquire(t.Context(), path)
	if err != nil {
		t.Fatalf("second, after the first: %v", err)
	}
	if err := second.Release(); err != nil {
		t.Fatalf("releasing: %v", err)
	}
}

func TestAcquireTellsWhatCannotBeOpened(t *testing.T) {
	if _, err := filelock.Acquire(t.Context(), filepath.Join(t.TempDir(), "missing", "lock")); err == nil {
		t.Error("no error for a lock in a folder that does not exist")
	}
}
