// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// diskSize is the size of the disk of the server's stores in MiB. The stores of an hour need a fraction of it.
const diskSize = 768

// newDisk mounts a disk for the server's stores in namespaces of its own, which a process holds so that the disk survives the server. It
// returns nil if such a disk cannot be mounted here.
func newDisk(t *testing.T) *disk {
	t.Helper()
	folder := t.TempDir()
	script := fmt.Sprintf("mount -t tmpfs -o size=%dm,mode=700 tmpfs %s && touch %[2]s/mounted && exec sleep infinity", diskSize, folder)
	holder := exec.CommandContext(context.WithoutCancel(t.Context()), "unshare", "-Urm", "sh", "-c", script)
	holder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		t.Logf("no disk that can be filled: %v", err)
		return nil
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = holder.Wait() // It is killed at the end.
	}()
	t.Cleanup(func() { _ = holder.Process.Kill() })
	d := &disk{
		folder: folder,
		enter:  fmt.Sprintf("nsenter --target %d --user --mount --preserve-credentials", holder.Process.Pid),
		inside: filepath.Join("/proc", fmt.Sprint(holder.Process.Pid), "root", folder),
	}
	failed := false
	mirrortest.Eventually(t, "the disk is mounted", func(context.Context) error {
		select {
		case <-ended:
			failed = true
			return nil
		default:
			_, err := os.Stat(filepath.Join(d.inside, "mounted"))
			return err
		}
	})
	probe := append(strings.Fields(d.enter), "true")
	if failed || exec.CommandContext(t.Context(), probe[0], probe[1:]...).Run() != nil {
		t.Log("no disk that can be filled: it cannot be mounted in a user namespace")
		return nil
	}
	return d
}

// fill writes until the disk is full, and returns a function that frees the space.
func (d *disk) fill() (free func() error, err error) {
	path := filepath.Join(d.inside, "filling")
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	for block := make([]byte, 4096); err == nil; {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return nil, err
	}
	return func() error { return os.Remove(path) }, file.Close()
}
