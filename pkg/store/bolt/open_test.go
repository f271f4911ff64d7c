// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/bolt/internal/journal"
)

// livingStore is a store that is open and has entries in its journal, as its files are.
func livingStore(t *testing.T) (path string, e *bolt.Engine, files capture) {
	t.Helper()
	path = leasedStore(t)
	disk := recordDisk(t, path)
	e = mustOpenOn(t, path, bolt.Options{}.WithDisk(disk))
	for range 200 { // Enough for checkpoints.
		set(t, e, "/a", strings.Repeat("x", 1000))
	}
	set(t, e, "/b", "last")
	disk.mu.Lock()
	defer disk.mu.Unlock()
	return path, e, disk.capture()
}

// TestFilesThatDoNotBelongTogether opens a store whose files are not those of one moment.
func TestFilesThatDoNotBelongTogether(t *testing.T) {
	tests := map[string]struct {
		spoil func(t *testing.T, path string)
		want  string
	}{
		"no journal":            {func(t *testing.T, path string) { removeFiles(t, journal.Paths(path)[0], journal.Paths(path)[1]) }, "journal-a is missing"},
		"half of a journal":     {func(t *testing.T, path string) { removeFiles(t, journal.Paths(path)[0]) }, "journal-a is missing"},
		"the other half":        {func(t *testing.T, path string) { removeFiles(t, journal.Paths(path)[1]) }, "journal-b is missing"},
		"no store":              {func(t *testing.T, path string) { removeFiles(t, path) }, "restore a backup"},
		"an empty store":        {truncate, "restore a backup"},
		"a checkpoint that rot": {spoilCheckpoint, "restore a backup"},
		"an older store":        {olderStore, "older than its journal"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, files := livingStore(t)
			path := files.restore(t, killed)
			test.spoil(t, path)
			_, err := openOn(t, path, bolt.Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("open: %v, want %q", err, test.want)
			}
		})
	}
}

func removeFiles(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func truncate(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
}

// spoilCheckpoint spoils both checkpoints, so that the last is among them.
func spoilCheckpoint(t *testing.T, path string) {
	t.Helper()
	for _, name := range journal.Paths(path) {
		overwrite(t, name, 100, []byte("spoilt"))
	}
}

func overwrite(t *testing.T, path string, offset int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(b, offset)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// olderStore puts the meta pages of a store at the beginning of its life in place.
func olderStore(t *testing.T, path string) {
	t.Helper()
	young := filepath.Join(t.TempDir(), "store.db")
	e := mustOpenOn(t, young, bolt.Options{}.WithDisk(unsyncedDisk{}))
	set(t, e, "/a", "x")
	content, err := os.ReadFile(young)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, path, 0, content[:2*pageBytes])
}

// TestCopyOfALivingStore opens what bbolt writes of a read transaction, on its own and
// where the journal of the store that it is a copy of still lies.
func TestCopyOfALivingStore(t *testing.T) {
	_, e, files := livingStore(t)
	var content bytes.Buffer
	err := e.DB().View(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(&content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	beside := files.restore(t, killed)
	alone := filepath.Join(t.TempDir(), "copy.db")
	want := read(t, e, "/", 0)
	set(t, e, "/c", "after the copy")
	for _, path := range []string{alone, beside} {
		if err := os.WriteFile(path, content.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		opened := mustOpenOn(t, path, bolt.Options{})
		if got := read(t, opened, "/", 0); got != want {
			t.Errorf("the copy holds %.100s", got)
		}
		checkPages(t, opened)
		set(t, opened, "/d", "x")
		closeEngine(t, opened)
		closeEngine(t, mustOpenOn(t, path, bolt.Options{}))
	}
}

// TestClosedStoreIsOneFile shows that a store which was closed, or compacted by bbolt, is complete in itself.
func TestClosedStoreIsOneFile(t *testing.T) {
	path, e, _ := livingStore(t)
	want := read(t, e, "/", 0)
	closeEngine(t, e)
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("files of a closed store: %v (%v)", names, err)
	}
	defragmented := path + ".new"
	compactFile(t, path, defragmented)
	for _, path := range []string{path, defragmented} {
		opened := mustOpenOn(t, path, bolt.Options{})
		if got := read(t, opened, "/", 0); got != want {
			t.Errorf("%s holds %.100s", path, got)
		}
		set(t, opened, "/d", "x")
		closeEngine(t, opened)
	}
}

func compactFile(t *testing.T, from, to string) {
	t.Helper()
	source, err := bbolt.Open(from, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	target, err := bbolt.Open(to, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(bbolt.Compact(target, source, 1<<20), source.Close(), target.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestFormats makes a file, and opens one as servers made it that look below one prefix only: they can go on with that,
// and refuse the new one.
func TestFormats(t *testing.T) {
	for _, format := range []byte{3, 2} {
		path, e, _ := livingStore(t)
		want := read(t, e, "/", 0)
		closeEngine(t, e)
		changeMeta(t, path, func(meta *bbolt.Bucket) error {
			if made := meta.Get([]byte("format")); made[7] != 3 {
				t.Errorf("a file is made with format %d", made[7])
			}
			return meta.Put([]byte("format"), []byte{0, 0, 0, 0, 0, 0, 0, format})
		})
		opened := mustOpenOn(t, path, bolt.Options{})
		if got := read(t, opened, "/", 0); got != want {
			t.Errorf("format %d holds %.100s", format, got)
		}
		set(t, opened, "/new", "x")
		closeEngine(t, opened)
		changeMeta(t, path, func(meta *bbolt.Bucket) error {
			if got := meta.Get([]byte("format")); got[7] != format {
				t.Errorf("format %d becomes %d", format, got[7])
			}
			return nil
		})
	}
}

// TestOlderFormatIsUpgraded opens a file as the format without a journal had it.
func TestOlderFormatIsUpgraded(t *testing.T) {
	path, e, _ := livingStore(t)
	want := read(t, e, "/", 0)
	closeEngine(t, e)
	old := path + ".old"
	compactFile(t, path, old)
	changeMeta(t, old, func(meta *bbolt.Bucket) error {
		return errors.Join(meta.Put([]byte("format"), []byte{0, 0, 0, 0, 0, 0, 0, 1}), meta.Delete([]byte("sequence")))
	})
	for range 2 {
		opened := mustOpenOn(t, old, bolt.Options{})
		if got := read(t, opened, "/", 0); got != want {
			t.Errorf("the upgraded store holds %.100s", got)
		}
		closeEngine(t, opened)
	}
	opened := mustOpenOn(t, old, bolt.Options{})
	set(t, opened, "/new", "x")
	closeEngine(t, opened)
	changeMeta(t, old, func(meta *bbolt.Bucket) error {
		if got := meta.Get([]byte("format")); got[7] != 2 {
			t.Errorf("format %d", got[7])
		}
		return nil
	})
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

// TestVerifyOfAStoreThatWasNotClosed checks what a power loss left.
func TestVerifyOfAStoreThatWasNotClosed(t *testing.T) {
	_, e, files := livingStore(t)
	for range 5 {
		path := files.restore(t, powerLoss(rand.New(rand.NewPCG(rand.Uint64(), 0))))
		state, err := bolt.Inspect(t.Context(), path)
		if err != nil || state.Revision != e.Revision() {
			t.Errorf("revision %d, want %d: %v", state.Revision, e.Revision(), err)
		}
	}
	path := files.restore(t, killed)
	removeFiles(t, journal.Paths(path)[0], journal.Paths(path)[1])
	if _, err := bolt.Inspect(t.Context(), path); err == nil || !strings.Contains(err.Error(), "journal-a is missing") {
		t.Errorf("without its journal: %v", err)
	}
}

// TestCopyOfAStoreThatWasNotWrittenTo takes the power from a copy of a closed store. bbolt gives every other such copy
// its newer meta page in the place of the older.
func TestCopyOfAStoreThatWasNotWrittenTo(t *testing.T) {
	path := leasedStore(t)
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for range 2 { // One transaction between them: both parities.
		alone := copyOfClosedStore(t, path)
		disk := recordDisk(t, alone)
		e := mustOpenOn(t, alone, bolt.Options{}.WithDisk(disk))
		set(t, e, "/b", "acknowledged")
		want := read(t, e, "/", 0)
		disk.mu.Lock()
		c := disk.capture()
		disk.mu.Unlock()
		for range 20 {
			again := mustOpenOn(t, c.restore(t, powerLoss(random)), bolt.Options{}.WithDisk(unsyncedDisk{}))
			if got := read(t, again, "/", 0); got != want {
				t.Errorf("after a power loss the copy holds %q, want %q", got, want)
			}
			closeEngine(t, again)
		}
		closeEngine(t, e)
		names, err := filepath.Glob(alone + "*")
		if err != nil || len(names) != 1 {
			t.Errorf("files of the closed copy: %v (%v)", names, err)
		}
	}
}

// copyOfClosedStore copies a store that was opened and not written to, and then writes to it.
func copyOfClosedStore(t *testing.T, path string) string {
	t.Helper()
	e := mustOpenOn(t, path, bolt.Options{}.WithDisk(unsyncedDisk{}))
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := e.DB().View(func(tx *bbolt.Tx) error { return tx.CopyFile(copied, 0o600) }); err != nil {
		t.Fatal(err)
	}
	set(t, e, "/a", "x")
	closeEngine(t, e)
	return copied
}
