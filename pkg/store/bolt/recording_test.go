// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// sectorBytes is the unit in which a disk writes atomically.
const sectorBytes = 512

// sectors are the contents of sectors by their offset.
type sectors map[int64][]byte

// recordedFile writes to the file of an engine in the place of bbolt and records which sectors are synced, to construct the
// state after a power loss. It relies on the order of operations of a commit, which TestFaultAtEveryStep verifies: data
// pages, sync, meta page, sync.
type recordedFile struct {
	engine *bolt.Engine
	file   *os.File
	// metaBytes is the size of both meta pages.
	metaBytes int64

	// step is called before each write, with mu held.
	step func()

	mu sync.Mutex
	// size is the length of the file. bbolt syncs it when the file grows.
	size int64
	// synced are the sectors that survive a power loss, written those written since.
	synced, written sectors
	// lost are the sectors of a failed sync, which may be on disk or not. Later syncs do not write them.
	lost sectors
	// metaPending is true while the last write is a meta page that may not be synced yet. The commit is complete when the
	// revision of the engine is higher than metaRevision.
	metaPending  bool
	metaRevision int64
}

// recordFile starts to record the writes of an engine. The current content of the file counts as synced.
func recordFile(t *testing.T, e *bolt.Engine) *recordedFile {
	t.Helper()
	file, err := os.OpenFile(e.Path(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	r := &recordedFile{
		engine: e, file: file, metaBytes: 2 * int64(e.DB().Info().PageSize), step: func() {},
		synced: sectors{}, written: sectors{}, lost: sectors{},
	}
	content, err := os.ReadFile(e.Path())
	if err != nil {
		t.Fatal(err)
	}
	r.size = int64(len(content))
	empty := make([]byte, sectorBytes)
	for at := 0; at < len(content); at += sectorBytes {
		if sector := content[at : at+sectorBytes]; !bytes.Equal(sector, empty) {
			r.synced[int64(at)] = bytes.Clone(sector)
		}
	}
	e.InterceptWrites(r.WriteAt)
	return r
}

func (r *recordedFile) WriteAt(b []byte, offset int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin(offset)
	return r.write(b, offset)
}

// begin updates what is synced before a write.
func (r *recordedFile) begin(offset int64) {
	r.step()
	if info, err := r.file.Stat(); err == nil {
		r.size = info.Size()
	}
	isMeta := offset < r.metaBytes
	if isMeta || r.metaPending {
		r.sync()
	}
	r.metaPending, r.metaRevision = isMeta, r.engine.Revision()
}

func (r *recordedFile) write(b []byte, offset int64) (int, error) {
	n, err := r.file.WriteAt(b, offset)
	for at := offset / sectorBytes * sectorBytes; at < offset+int64(n); at += sectorBytes {
		sector := make([]byte, sectorBytes)
		_, _ = r.file.ReadAt(sector, at) // The file ends at a page boundary.
		r.written[at] = sector
		delete(r.lost, at)
	}
	return n, err
}

// sync records a successful sync.
func (r *recordedFile) sync() {
	maps.Copy(r.synced, r.written)
	r.written, r.metaPending = sectors{}, false
}

// failSync records a failed sync.
func (r *recordedFile) failSync() {
	maps.Copy(r.lost, r.written)
	r.written, r.metaPending = sectors{}, false
}

// capture is the state of a file at one moment.
type capture struct {
	name   string
	size   int64
	synced sectors
	// unsynced are sectors that may be on disk or not.
	unsynced sectors
}

func (r *recordedFile) capture() capture {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.captureLocked()
}

func (r *recordedFile) captureLocked() capture {
	if r.metaPending && r.engine.Revision() > r.metaRevision {
		r.sync()
	}
	c := capture{name: filepath.Base(r.file.Name()), size: r.size, synced: maps.Clone(r.synced), unsynced: maps.Clone(r.lost)}
	maps.Copy(c.unsynced, r.written)
	return c
}

// outcome decides for each sector that was not synced whether it is on disk.
type outcome func() bool

// killed keeps all sectors: the process died, the operating system did not.
var killed outcome = func() bool { return true }

// nothingUnsynced keeps only synced sectors.
var nothingUnsynced outcome = func() bool { return false }

// powerLoss keeps a random subset of the sectors.
func powerLoss(random *rand.Rand) outcome {
	share := []float64{0, 0.1, 0.5, 0.9, 1}[random.IntN(5)]
	return func() bool { return random.Float64() < share }
}

// restore writes the file to a new directory, with the unsynced sectors that the outcome keeps, and returns its path.
func (c capture) restore(t *testing.T, left outcome) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), c.name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := f.Truncate(c.size); err != nil {
		t.Fatal(err)
	}
	content := maps.Clone(c.synced)
	for at, sector := range c.unsynced {
		if left() {
			content[at] = sector
		}
	}
	for at, sector := range content {
		if _, err := f.WriteAt(sector, at); err != nil {
			t.Fatal(err)
		}
	}
	return path
}
