// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// devices are the devices of the machine that every container has.
var devices = []string{"/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero"}

// descriptors are the links of /dev to the open files of a process.
var descriptors = map[string]string{"/dev/fd": "/proc/self/fd", "/dev/stdin": "fd/0", "/dev/stdout": "fd/1", "/dev/stderr": "fd/2"}

// resolution are the files that a kubelet writes for every container.
var resolution = []string{"/etc/hosts", "/etc/resolv.conf"}

// isolate starts the process in its own mount and PID namespaces.
func isolate(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID}
}

// Enter replaces this process, which Command has isolated, by the program of the encoded Spec. It returns only if it
// fails.
func Enter(encoded string) error {
	var spec Spec
	if err := json.Unmarshal([]byte(encoded), &spec); err != nil {
		return fmt.Errorf("failed to decode the container: %w", err)
	}
	// Capabilities belong to a thread. The program gets those of the thread that executes it.
	runtime.LockOSThread()
	if err := spec.changeRoot(); err != nil {
		return fmt.Errorf("failed to prepare the container's files: %w", err)
	}
	if err := spec.dropPrivileges(); err != nil {
		return fmt.Errorf("failed to drop privileges: %w", err)
	}
	return fmt.Errorf("failed to run %s: %w", spec.Args[0], unix.Exec(spec.Args[0], spec.Args, spec.Env))
}

// changeRoot makes everything but the root and its mounts invisible.
func (s Spec) changeRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("failed to make mounts private: %w", err)
	}
	if err := bind(s.Root, s.Root, false); err != nil {
		return err
	}
	if err := s.mount(); err != nil {
		return err
	}
	if s.ReadOnlyRoot {
		if err := makeReadOnly(s.Root); err != nil {
			return err
		}
	}
	if err := os.Chdir(s.Root); err != nil {
		return err
	}
	// This mounts the old root over the new one. It is unmounted below.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("failed to change the root: %w", err)
	}
	return errors.Join(unix.Unmount(".", unix.MNT_DETACH), os.Chdir("/"))
}

// mount mounts everything below the root.
func (s Spec) mount() error {
	proc := filepath.Join(s.Root, "proc")
	if err := os.MkdirAll(proc, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("failed to mount /proc: %w", err)
	}
	var usual []Mount
	for _, path := range resolution {
		usual = append(usual, Mount{HostPath: path, Path: path, ReadOnly: true})
	}
	for _, path := range devices {
		usual = append(usual, Mount{HostPath: path, Path: path})
	}
	// Mounts of the Spec come last, so that they can cover the others.
	for _, each := range slices.Concat(usual, s.Mounts) {
		target := filepath.Join(s.Root, each.Path)
		if err := makeMountPoint(each.HostPath, target); err != nil {
			return err
		}
		if err := bind(each.HostPath, target, each.ReadOnly); err != nil {
			return err
		}
	}
	return s.link()
}

// link creates the links of /dev. They exist if an earlier container used the same root.
func (s Spec) link() error {
	for path, target := range descriptors {
		if err := os.Symlink(target, filepath.Join(s.Root, path)); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("failed to link %s: %w", path, err)
		}
	}
	return nil
}

// makeMountPoint creates a folder for a folder and a file for a file, unless it exists.
func makeMountPoint(source, target string) error {
	info, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("failed to find the source of a mount: %w", err)
	}
	if info.IsDir() {
		return os.MkdirAll(target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

func bind(source, target string, readOnly bool) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("failed to mount %s at %s: %w", source, target, err)
	}
	if readOnly {
		return makeReadOnly(target)
	}
	return nil
}

func makeReadOnly(target string) error {
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("failed to make %s read-only: %w", target, err)
	}
	return nil
}

// dropPrivileges switches to the user and gives up all privileges for good. The process is killed when its parent ends.
func (s Spec) dropPrivileges() error {
	// The kernel returns EINVAL for the first number after the known capabilities.
	for capability := uintptr(0); ; capability++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break
		}
		if err != nil {
			return fmt.Errorf("failed to drop capability %d: %w", capability, err)
		}
	}
	if err := errors.Join(unix.Setgroups(s.Groups), unix.Setresgid(s.Group, s.Group, s.Group),
		unix.Setresuid(s.User, s.User, s.User)); err != nil {
		return fmt.Errorf("failed to set user %d and group %d: %w", s.User, s.Group, err)
	}
	header, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	return errors.Join(
		unix.Capset(&header, &none[0]),
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
		// A change of the user resets this, so it comes last.
		unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0),
	)
}
