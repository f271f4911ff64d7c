// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"fmt"
	"syscall"

	"go.etcd.io/bbolt"
)

// ReleasePages takes the pages of the file that were read out of the memory of the process. They stay in the page cache of the operating
// system, and are mapped again when they are read.
func (e *Engine) ReleasePages() error {
	return e.db.View(func(tx *bbolt.Tx) error { // The file is not mapped elsewhere meanwhile.
		_, _, code := syscall.Syscall(syscall.SYS_MADVISE, e.db.Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED)
		if code != 0 {
			return fmt.Errorf("release the pages of %s: %w", e.Path(), code)
		}
		return nil
	})
}
