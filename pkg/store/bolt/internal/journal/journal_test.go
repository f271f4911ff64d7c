// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/store/bolt/internal/journal"
)

const size = 64 << 10

// create makes a journal without entries and returns the file that it would protect.
func create(t *testing.T) (path string, j *journal.Journal) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store")
	j, err := journal.Create(journal.OS{}, path, size, journal.Checkpoint{Store: 7, Sequence: 100, State: []byte("first")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return path, j
}

// entry is one with a payload that tells it, of some size.
func entry(n, bytes int) []byte {
	payload := fmt.Appendf(nil, "entry %d ", n)
	payload = append(payload, make([]byte, max(0, bytes-len(payload)))...)
	return append(make([]byte, journal.HeaderSize), payload...)
}

// add appends entries with the numbers from first to last.
func add(t *testing.T, j *journal.Journal, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		if err := j.Append(entry(n, 100*(n%20))); err != nil {
			t.Fatal(err)
		}
		if j.Sequence() != uint64(n) {
			t.Fatalf("entry %d has number %d", n, j.Sequence())
		}
	}
}

// checkpoint makes one of all entries so far, or only begins it.
func checkpoint(t *testing.T, j *journal.Journal, finish bool) {
	t.Helper()
	cp := journal.Checkpoint{Store: 7, Sequence: j.Sequence(), State: fmt.Appendf(nil, "after %d", j.Sequence())}
	mark := j.Turn()
	if !finish {
		return
	}
	if err := j.WriteCheckpoint(mark, cp); err != nil {
		t.Fatal(err)
	}
	j.Release(mark)
}

// readAll reads a journal: its state, and the entries by their first words.
func readAll(path string) (state string, entries []string, err error) {
	r, err := journal.Read(journal.OS{}, path)
	if err != nil || r == nil {
		return "", nil, err
	}
	next := r.Sequence
	err = r.Replay(func(sequence uint64, payload []byte) error {
		if next++; sequence != next {
			return fmt.Errorf("entry %d comes as number %d", next, sequence)
		}
		entries = append(entries, strings.Join(strings.Fields(string(payload))[:2], " "))
		return nil
	})
	return string(r.State), entries, errors.Join(err, r.Close())
}

func expect(t *testing.T, path, state string, first, last int) {
	t.Helper()
	var want []string
	for n := first; n <= last; n++ {
		want = append(want, fmt.Sprintf("entry %d", n))
	}
	gotState, got, err := readAll(path)
	if err != nil || gotState != state || !slices.Equal(got, want) {
		t.Fatalf("read %q and %q (%v), want %q and %q", gotState, got, err, state, want)
	}
}

func TestEntriesComeBack(t *testing.T) {
	path, j := create(t)
	expect(t, path, "first", 101, 100)
	add(t, j, 101, 120)
	expect(t, path, "first", 101, 120)
	checkpoint(t, j, false)
	add(t, j, 121, 140)
	expect(t, path, "first", 101, 140)
	checkpoint(t, j, true) // The first was never finished: nothing turns.
	expect(t, path, "after 140", 141, 140)
	add(t, j, 141, 150)
	expect(t, path, "after 140", 141, 150)
}

// TestRecycledFiles shows that entries of earlier generations stay away from later ones.
func TestRecycledFiles(t *testing.T) {
	path, j := create(t)
	last := 100
	for round := range 10 {
		state := "first"
		if round > 0 {
			state = fmt.Sprintf("after %d", last)
		}
		for n := range 20 - round {
			add(t, j, last+n+1, last+n+1)
			expect(t, path, state, last+1, last+n+1)
		}
		last += 20 - round
		checkpoint(t, j, true)
	}
	if j.Bytes() != 0 {
		t.Errorf("%d bytes after a checkpoint", j.Bytes())
	}
}

func TestCut(t *testing.T) {
	path, j := create(t)
	add(t, j, 101, 105)
	if err := j.Cut(); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "first", 101, 104)
	add(t, j, 105, 106)
	expect(t, path, "first", 101, 106)
}

// TestTornEnd cuts the last entry short at each of its sectors.
func TestTornEnd(t *testing.T) {
	for cut := 0; cut < 4*512; cut += 512 {
		path, j := create(t)
		add(t, j, 101, 101)
		end := 4096 + j.Bytes()
		if err := j.Append(entry(102, 2000)); err != nil {
			t.Fatal(err)
		}
		overwrite(t, journal.Paths(path)[0], end+int64(cut), []byte("torn"))
		expect(t, path, "first", 101, 101)
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

// TestDamage spoils what was on disk: entries that others follow, in either file, and
// the checkpoint that entries were written after.
func TestDamage(t *testing.T) {
	tests := map[string]struct {
		file   int
		offset int64
		want   string
	}{
		"the first entry":                    {0, 4096, "cannot be read at offset 4096, where entry 101 should be, but entry 102"},
		"a payload":                          {0, 4096 + 512 + 60, "cannot be read at offset 4608, where entry 102 should be, but entry 103"},
		"the last entry of the first file":   {0, 4096 + 9*512, "journal-b"},
		"the first entry of the second file": {1, 4096, "journal-b cannot be read at offset 4096, where entry 111 should be, but entry 112"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path, j := create(t)
			for n := 101; n <= 120; n++ {
				if n == 111 {
					checkpoint(t, j, false)
				}
				if err := j.Append(entry(n, 100)); err != nil {
					t.Fatal(err)
				}
			}
			overwrite(t, journal.Paths(path)[test.file], test.offset, []byte("spoilt"))
			_, entries, err := readAll(path)
			if !errors.Is(err, journal.ErrDamaged) || !strings.Contains(fmt.Sprint(err), test.want) || len(entries) != 0 {
				t.Errorf("read %q (%v), want %q", entries, err, test.want)
			}
		})
	}
}

func TestDamagedCheckpoint(t *testing.T) {
	path, j := create(t)
	add(t, j, 101, 105)
	checkpoint(t, j, true)
	// Nothing was written after it: it may have been torn, and the one before is as good.
	overwrite(t, journal.Paths(path)[1], 60, []byte("spoilt"))
	expect(t, path, "first", 101, 105)
	add(t, j, 106, 106)
	_, _, err := readAll(path)
	if want := "checkpoint at offset 0 of " + journal.Paths(path)[1]; !errors.Is(err, journal.ErrDamaged) || !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("read: %v, want %q", err, want)
	}
}

// TestPayloadThatLooksLikeAnEntry puts the entries of one journal into those of another.
func TestPayloadThatLooksLikeAnEntry(t *testing.T) {
	otherPath, other := create(t)
	add(t, other, 101, 103)
	bytes, err := os.ReadFile(journal.Paths(otherPath)[0])
	if err != nil {
		t.Fatal(err)
	}
	path, j := create(t)
	add(t, j, 101, 101)
	end := 4096 + j.Bytes()
	overwrite(t, journal.Paths(path)[0], end+512, bytes[4096:8192])
	expect(t, path, "first", 101, 101)
}

func TestNoJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	if r, err := journal.Read(journal.OS{}, path); r != nil || err != nil {
		t.Errorf("read %v, %v", r, err)
	}
	if err := journal.Remove(journal.OS{}, path); err != nil {
		t.Error(err)
	}
}

// TestUnfinishedJournal reads files that a crash left before there was a checkpoint.
func TestUnfinishedJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	for _, name := range journal.Paths(path) {
		if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := journal.Read(journal.OS{}, path); r != nil || err != nil {
			t.Errorf("read %v, %v", r, err)
		}
	}
}

// forgetfulDisk fails one sync of a file and none after it, as Linux does.
type forgetfulDisk struct {
	journal.OS
	failing *error
}

func (d forgetfulDisk) Open(path string, create bool) (journal.File, error) {
	f, err := d.OS.Open(path, create)
	return forgetfulFile{f, d.failing}, err
}

type forgetfulFile struct {
	journal.File
	failing *error
}

func (f forgetfulFile) Sync() error {
	err := *f.failing
	*f.failing = nil
	return errors.Join(err, f.File.Sync())
}

// TestFailedSyncIsToldToAll has a checkpoint hear of a failure that may concern an entry of the same file.
func TestFailedSyncIsToldToAll(t *testing.T) {
	var failing error
	disk := forgetfulDisk{failing: &failing}
	j, err := journal.Create(disk, filepath.Join(t.TempDir(), "store"), size, journal.Checkpoint{State: []byte("first")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	add(t, j, 1, 1)
	// The first two turns write to either file.
	for range 2 {
		checkpoint(t, j, true)
	}
	mark := j.Turn()
	failing = errors.New("lost")
	if err := j.WriteCheckpoint(mark, journal.Checkpoint{State: []byte("next")}); !errors.Is(err, journal.ErrSync) {
		t.Fatalf("checkpoint: %v, want %v", err, journal.ErrSync)
	}
	if err := j.Append(entry(2, 10)); !errors.Is(err, journal.ErrSync) {
		t.Errorf("entry of the same file: %v, want %v", err, journal.ErrSync)
	}
}
