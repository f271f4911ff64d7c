// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/storage/bolt"
)

// smallDisk names, to a child process, the folder to mount a small disk on.
const smallDisk = "SLIPSTREAM_TEST_SMALL_DISK"

// onSmallDisk runs a test in a process of its own, with a disk of so many bytes. It
// needs a user namespace to mount one, and leaves the test out where there is none.
func onSmallDisk(t *testing.T, bytes int, test func(folder string)) {
	t.Helper()
	if folder := os.Getenv(smallDisk); folder != "" {
		if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
			t.Skipf("mounting: %v", err)
		}
		test(folder)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), smallDisk+"="+t.TempDir())
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
		t.Skipf("no user namespace: %v", err)
	case strings.Contains(string(output), "--- SKIP"):
		t.Skipf("no disk of its own:\n%s", output)
	}
}

// TestFullDisk fills a disk.
func TestFullDisk(t *testing.T) {
	onSmallDisk(t, 16<<20, func(folder string) { testFullDisk(t, folder) })
}

func testFullDisk(t *testing.T, folder string) {
	e, err := bolt.Open(t.Context(), filepath.Join(folder, "store.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(folder, "filler")
	if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	written := fillDisk(t, e)
	if failures := gather(t, legacyregistry.DefaultGatherer, "store")["write_failures_total disk_full"]; failures < 5 {
		t.Errorf("%v failures for want of space are counted", failures)
	}
	if got := countOf(t, e, "/", 0); got != int64(written) || e.Revision() != int64(1+written) {
		t.Errorf("%d keys at revision %d, want %d at %d", got, e.Revision(), written, 1+written)
	}
	if err := e.Check(t.Context()); err != nil {
		t.Errorf("a full disk must not fail the health check: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if got := set(t, e, "/after", "x"); got != int64(2+written) {
		t.Errorf("revision %d once there is space, want %d", got, 2+written)
	}
	path := e.Path()
	closeEngine(t, e)
	e = reopen(t, path)
	defer closeEngine(t, e)
	checkWhole(t, e)
	if got := countOf(t, e, "/", 0); got != int64(1+written) {
		t.Errorf("%d keys after reopening, want %d", got, 1+written)
	}
}

// fillDisk writes until the disk is full, and a little on.
func fillDisk(t *testing.T, e *bolt.Engine) (written int) {
	t.Helper()
	value := make([]byte, 50_000)
	for refused := 0; refused < 5; {
		key := fmt.Sprintf("/%06d", written)
		_, err := e.Put(t.Context(), &pb.PutRequest{Key: []byte(key), Value: value})
		switch {
		case err == nil:
			written++
		case errors.Is(err, bolt.ErrDiskFull):
			refused++
		default:
			t.Fatalf("write to a full disk: %v", err)
		}
		if written > 1000 {
			t.Fatal("the disk does not fill")
		}
	}
	return written
}
