// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"sync"
)

// syncedFile tells everybody who syncs a file that it failed. Linux reports a failed write
// once for an open file, to whoever syncs next: a checkpoint could hear what concerns
// an entry, and the entry pass as being on disk.
type syncedFile struct {
	File

	mutex  sync.Mutex
	failed error
}

// Sync fails once a sync has failed, whatever the disk says now.
func (f *syncedFile) Sync() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.failed == nil {
		f.failed = f.File.Sync()
	}
	return f.failed
}

// syncFile syncs and marks a failure as one that leaves the disk unknown.
func syncFile(f File, path string) error {
	if err := f.Sync(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrSync, path, err)
	}
	return nil
}
