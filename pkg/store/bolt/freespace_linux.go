// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import "syscall"

// volumeOf tells how many bytes may still be written in a folder, and how many there are in all on its volume.
func volumeOf(folder string) (free, size int64, err error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return 0, 0, err
	}
	return int64(disk.Bavail) * disk.Bsize, int64(disk.Blocks) * disk.Bsize, nil
}
