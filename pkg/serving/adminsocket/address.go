// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package adminsocket

import (
	"fmt"
	"os"
	"path/filepath"
)

// longestAddress is what the kernel takes as the path of a socket, in bytes: 108 with the byte that ends it on Linux,
// 104 elsewhere.
const longestAddress = 103

// address is a path of the socket in an open folder that the kernel takes, as long as the folder stays open. A folder
// with a long name is reached through the process's own descriptor of it.
func address(folder *os.File) string {
	if path := filepath.Join(folder.Name(), SocketName); len(path) <= longestAddress {
		return path
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), SocketName)
}
