// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package adminsocket

import (
	"fmt"
	"os"
	"path/filepath"
)

// maxPathLength is the kernel's limit for a socket's path in bytes: 108 including the final NUL on Linux, 104
// elsewhere.
const maxPathLength = 103

// address returns a path of the socket that fits the limit while the folder is open. A folder with a long path is
// reached through the process's file descriptor.
func address(folder *os.File) string {
	if path := filepath.Join(folder.Name(), SocketName); len(path) <= maxPathLength {
		return path
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), SocketName)
}
