// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// openStore returns a store that is open and has been written to.
func openStore(t *testing.T) (path string, e *bolt.Engine, file capture) {
	t.Helper()
	path = leasedStore(t)
	e = openManual(t, path, bolt.Options{}.WithoutSync())
	recorded := recordFile(t, e)
	for range 20 {
		set(t, e, "/a", strings.Repeat("x", 1000))
	}
	set(t, e, "/b", "last")
	return path, e, recorded.capture()
}

// TestCopyOfOpenStore opens a file that bbolt has copied in a read transaction.
func TestCopyOfOpenStore(t *testing.T) {
	_, e, _ := openStore(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := e.DB().View(func(tx *bbolt.Tx) error { return tx.CopyFile(copied, 0o600) }); err != nil {
		t.Fatal(err)
	}
	want := read(t, e, "/", 0)
	set(t, e, "/c", "after the copy")
	opened := openManual(t, copied, bolt.Options{})
	if got := read(t, opened, "/", 0); got != want {
		t.Errorf("keys of the copy: %.100s", got)
	}
	checkPages(t, opened)
	set(t, opened, "/d", "x")
	closeEngine(t, opened)
	closeEngine(t, openManual(t, copied, bolt.Options{}))
}

// TestFormat opens a file of another format.
func TestFormat(t *testing.T) {
	path := leasedStore(t)
	changeMeta(t, path, func(meta *bbolt.Bucket) error {
		if format := meta.Get([]byte("format")); format[7] != 1 {
			t.Errorf("a new file has format %d", format[7])
		}
		return meta.Put([]byte("format"), []byte{0, 0, 0, 0, 0, 0, 0, 2})
	})
	if _, err := bolt.Open(t.Context(), path, bolt.Options{}); err == nil ||
		!strings.Contains(err.Error(), "this version reads format 1 only") {
		t.Errorf("opening format 2: %v", err)
	}
}

func changeMeta(t *testing.T, path string, change func(*bbolt.Bucket) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error { return change(tx.Bucket([]byte("meta"))) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestVerifyAfterPowerLoss verifies the files that power losses leave.
func TestVerifyAfterPowerLoss(t *testing.T) {
	_, e, file := openStore(t)
	for range 5 {
		path := file.restore(t, powerLoss(rand.New(rand.NewPCG(rand.Uint64(), 0))))
		state, err := bolt.Inspect(t.Context(), path)
		if err != nil || state.Revision != e.Revision() {
			t.Errorf("revision %d, want %d: %v", state.Revision, e.Revision(), err)
		}
	}
}

// TestVerifyNewFile verifies the file of a process that ended after bbolt had created it.
func TestVerifyNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if found := verify(t, path); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	closeEngine(t, openManual(t, path, bolt.Options{}))
}

// TestPowerLossOnCopiedStore simulates power losses on a copy of a closed store. In every other such copy bbolt writes the
// newer meta page in the place of the older.
func TestPowerLossOnCopiedStore(t *testing.T) {
	path := leasedStore(t)
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for range 2 { // One transaction apart, to test both meta pages.
		alone := copyOfClosedStore(t, path)
		e := openManual(t, alone, bolt.Options{}.WithoutSync())
		file := recordFile(t, e)
		set(t, e, "/b", "acknowledged")
		want := read(t, e, "/", 0)
		c := file.capture()
		for range 20 {
			again := openManual(t, c.restore(t, powerLoss(random)), bolt.Options{}.WithoutSync())
			if got := read(t, again, "/", 0); got != want {
				t.Errorf("keys of the copy after a power loss: %q, want %q", got, want)
			}
			closeEngine(t, again)
		}
		closeEngine(t, e)
	}
}

// copyOfClosedStore opens a store, copies it, and writes to it after the copy.
func copyOfClosedStore(t *testing.T, path string) string {
	t.Helper()
	e := openManual(t, path, bolt.Options{}.WithoutSync())
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := e.DB().View(func(tx *bbolt.Tx) error { return tx.CopyFile(copied, 0o600) }); err != nil {
		t.Fatal(err)
	}
	set(t, e, "/a", "x")
	closeEngine(t, e)
	return copied
}
