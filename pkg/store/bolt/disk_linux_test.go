// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/smalldisk"
)

// TestFullDisk writes until the disk is full and checks that writes resume once there is space.
func TestFullDisk(t *testing.T) {
	smalldisk.Run(t, 16<<20, func(folder string) { testFullDisk(t, folder) })
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
		t.Errorf("write_failures_total for disk_full = %v, want at least 5", failures)
	}
	if got := countOf(t, e, "/", 0); got != int64(written) || e.Revision() != int64(1+written) {
		t.Errorf("%d keys at revision %d, want %d at %d", got, e.Revision(), written, 1+written)
	}
	if err := e.Check(t.Context()); err != nil {
		t.Errorf("a full disk must not fail the health check: %v", err)
	}
	ready := bolt.SpaceCheck(e)
	if err := ready.Check(nil); !errors.Is(err, bolt.ErrDiskFull) || !strings.Contains(err.Error(), "a write of 50007 bytes failed") {
		t.Errorf("full disk: check %s returned %v", ready.Name(), err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	set(t, e, "/small", "x")
	written++
	if err := ready.Check(nil); !errors.Is(err, bolt.ErrDiskFull) {
		t.Errorf("after a small write: check %s returned %v", ready.Name(), err)
	}
	set(t, e, "/large", strings.Repeat("x", 60_000))
	written++
	if err := ready.Check(nil); err != nil {
		t.Errorf("after a large write: check %s returned %v", ready.Name(), err)
	}
	if got := set(t, e, "/after", "x"); got != int64(2+written) {
		t.Errorf("revision %d after space was freed, want %d", got, 2+written)
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

// TestFullDiskWithoutWrites checks that the space check recovers without further writes.
func TestFullDiskWithoutWrites(t *testing.T) {
	smalldisk.Run(t, 48<<20, func(folder string) {
		e, err := bolt.Open(t.Context(), filepath.Join(folder, "store.db"), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer closeEngine(t, e)
		filler := filepath.Join(folder, "filler")
		if err := os.WriteFile(filler, make([]byte, 32<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		ready := bolt.SpaceCheck(e)
		if err := ready.Check(nil); err != nil {
			t.Errorf("before the disk is full: check %s returned %v", ready.Name(), err)
		}
		fillDisk(t, e)
		if err := ready.Check(nil); !errors.Is(err, bolt.ErrDiskFull) {
			t.Errorf("full disk: check %s returned %v", ready.Name(), err)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if err := ready.Check(nil); err != nil {
			t.Errorf("after space was freed: check %s returned %v", ready.Name(), err)
		}
	})
}

// fillDisk writes until five writes have failed because the disk is full. It returns the number of successful writes.
func fillDisk(t *testing.T, e *bolt.Engine) (written int) {
	t.Helper()
	value := make([]byte, 50_000)
	for failed := 0; failed < 5; {
		key := fmt.Sprintf("/%06d", written)
		_, err := e.Put(t.Context(), &pb.PutRequest{Key: []byte(key), Value: value})
		switch {
		case err == nil:
			written++
		case errors.Is(err, bolt.ErrDiskFull):
			failed++
		default:
			t.Fatalf("write to a full disk: %v", err)
		}
		if written > 1000 {
			t.Fatal("disk is not full after 1000 writes")
		}
	}
	return written
}
