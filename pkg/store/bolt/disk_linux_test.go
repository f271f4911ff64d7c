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

// TestFullDisk fills a disk.
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
		t.Errorf("%v failures for want of space are counted", failures)
	}
	if got := countOf(t, e, "/", 0); got != int64(written) || e.Revision() != int64(1+written) {
		t.Errorf("%d keys at revision %d, want %d at %d", got, e.Revision(), written, 1+written)
	}
	if err := e.Check(t.Context()); err != nil {
		t.Errorf("a full disk must not fail the health check: %v", err)
	}
	ready := bolt.SpaceCheck(e)
	if err := ready.Check(nil); !errors.Is(err, bolt.ErrDiskFull) || !strings.Contains(err.Error(), "a write of 50007 bytes failed") {
		t.Errorf("with a full disk %s says %v", ready.Name(), err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	set(t, e, "/small", "x")
	written++
	if err := ready.Check(nil); !errors.Is(err, bolt.ErrDiskFull) {
		t.Errorf("after a small write %s says %v", ready.Name(), err)
	}
	set(t, e, "/large", strings.Repeat("x", 60_000))
	written++
	if err := ready.Check(nil); err != nil {
		t.Errorf("after a large write %s says %v", ready.Name(), err)
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

// TestFullDiskWithoutWrites makes room on a disk to which nothing is written any more.
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
			t.Errorf("before the disk is full %s says %v", ready.Name(), err)
		}
		fillDisk(t, e)
		if err := ready.Check(nil); !errors.Is(err, bolt.ErrDiskFull) {
			t.Errorf("with a full disk %s says %v", ready.Name(), err)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if err := ready.Check(nil); err != nil {
			t.Errorf("with room %s says %v", ready.Name(), err)
		}
	})
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
