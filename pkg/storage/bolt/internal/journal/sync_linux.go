// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"os"
	"syscall"
)

// syncData syncs what is needed to read a file back: its data, and its size if that changed.
func syncData(f *os.File) error {
	if err := syscall.Fdatasync(int(f.Fd())); err != nil {
		return os.NewSyscallError("fdatasync", err)
	}
	return nil
}
