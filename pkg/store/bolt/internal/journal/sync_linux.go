// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"os"
	"syscall"
)

// syncData syncs what is needed to read a file back: its data, and its size if that changed.
func syncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) { // A signal is no failure of the disk.
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
