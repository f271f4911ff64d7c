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

// fillUp takes all that a disk has left but for some bytes.
func fillUp(folder string, left int64) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "filler"), make([]byte, int64(disk.Bavail)*disk.Bsize-left), 0o600)
}

// copyFile copies a store to a disk.
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

// A copy for which there is no space is not begun.
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
			t.Errorf("on a full disk: %v", err)
		}
		onlyFile(t, path)
		if got := contentOf(t, path); got != content {
			t.Error("the content differs")
		}
		if err := os.Remove(filepath.Join(folder, "filler")); err != nil {
			t.Fatal(err)
		}
		if _, err := bolt.Defragment(t.Context(), path); err != nil {
			t.Errorf("with space: %v", err)
		}
		if got := contentOf(t, path); got != content {
			t.Error("the content differs afterwards")
		}
	})
}

// fillOnce fills a disk as soon as a file is there, if that is before done.
func fillOnce(folder, file string, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		if _, err := os.Stat(file); err == nil {
			_ = fillUp(folder, 0) // Both want the last bytes.
			return
		}
	}
}

// If the disk becomes full while the copy is written, the old file remains.
func TestDefragmentWhileTheDiskFills(t *testing.T) {
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
		t.Logf("the copy ended with: %v", err)
		if err != nil && !errors.Is(err, bolt.ErrDiskFull) {
			t.Errorf("on a disk that fills: %v", err)
		}
		onlyFile(t, path)
		if got := contentOf(t, path); got != content {
			t.Error("the content differs")
		}
	})
}
