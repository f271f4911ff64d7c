// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import "syscall"

// freeSpace tells how many bytes may still be written in a folder.
func freeSpace(folder string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return 0, err
	}
	return int64(disk.Bavail) * disk.Bsize, nil
}
