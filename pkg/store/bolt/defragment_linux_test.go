// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/smalldisk"
)

// fillUp fills a disk, except for the given number of bytes.
func fillUp(folder string, left int64) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "filler"), make([]byte, int64(disk.Bavail)*disk.Bsize-left), 0o600)
}

// copyFile copies a store to another file.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDefragmentOnFullDisk checks that Defragment fails before it writes if the disk has no space for the copy.
func TestDefragmentOnFullDisk(t *testing.T) {
	smalldisk.Run(t, 64<<20, func(folder string) {
		source, content := bloated(t)
		path := filepath.Join(folder, "store.db")
		copyFile(t, source, path)
		if err := fillUp(folder, 1<<20); err != nil {
			t.Fatal(err)
		}
		_, err := bolt.Defragment(t.Context(), path)
		if !errors.Is(err, bolt.ErrDiskFull) || !strings.Contains(err.Error(), "bytes are free") {
			t.Errorf("defragment on a full disk: %v", err)
		}
		onlyFile(t, path)
		if got := contentOf(t, path); got != content {
			t.Error("content changed")
		}
		if err := os.Remove(filepath.Join(folder, "filler")); err != nil {
			t.Fatal(err)
		}
		if _, err := bolt.Defragment(t.Context(), path); err != nil {
			t.Errorf("defragment with free space: %v", err)
		}
		if got := contentOf(t, path); got != content {
			t.Error("content changed by the second attempt")
		}
	})
}

// fillOnce fills a disk as soon as a file exists, or returns when done is closed.
func fillOnce(folder, file string, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		if _, err := os.Stat(file); err == nil {
			_ = fillUp(folder, 0) // Defragment competes for the last bytes.
			return
		}
	}
}

// TestDefragmentWhileDiskFills checks that the old file remains if the disk becomes full during the copy.
func TestDefragmentWhileDiskFills(t *testing.T) {
	t.Parallel() // It mostly waits for other processes.
	smalldisk.Run(t, 256<<20, func(folder string) {
		path := filepath.Join(folder, "store.db")
		e := reopen(t, path)
		value := strings.Repeat("x", 100_000)
		for i := range 300 {
			set(t, e, fmt.Sprintf("/many/%d", i), value)
		}
		if err := e.Advance(t.Context(), e.Revision()); err != nil {
			t.Fatal(err)
		}
		closeEngine(t, e)
		content := contentOf(t, path)
		done, filled := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(filled)
			fillOnce(folder, path+".defrag", done)
		}()
		_, err := bolt.Defragment(t.Context(), path)
		close(done)
		<-filled
		t.Logf("Defragment returned: %v", err)
		if err != nil && !errors.Is(err, bolt.ErrDiskFull) {
			t.Errorf("defragment on a disk that becomes full: %v", err)
		}
		onlyFile(t, path)
		if got := contentOf(t, path); got != content {
			t.Error("content changed")
		}
	})
}
