// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package smalldisk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// variable is the environment variable with the folder on which a child process mounts the disk.
const variable = "SLIPSTREAM_TEST_SMALL_DISK"

// Run runs a test in a child process with a disk of a size in bytes. It needs a user namespace to mount the disk, and
// skips the test without one.
func Run(t *testing.T, bytes int, test func(folder string)) {
	t.Helper()
	if folder := os.Getenv(variable); folder != "" {
		if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
			t.Skipf("failed to mount the disk: %v", err)
		}
		test(folder)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), variable+"="+t.TempDir())
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	output, err := child.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		t.Errorf("%v\n%s", err, output)
	case err != nil:
		t.Skipf("cannot create a user namespace: %v", err)
	case strings.Contains(string(output), "--- SKIP"):
		t.Skipf("the child process could not mount the disk:\n%s", output)
	}
}
