// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/configbutler/slipstream/pkg/store/bolt/internal/journal"
)

const (
	pageBytes   = 4096 // what bbolt writes at once
	sectorBytes = 512  // what a disk writes at once
)

// recordingDisk knows what of its files is synced, so that it can tell what a power
// loss might leave. Nothing is synced in truth. It is for one store.
type recordingDisk struct {
	journal.OS

	mu    sync.Mutex
	files map[string]*recordedFile
	store string

	// step is called before each operation that changes something, with mu held.
	step func()
}

var _ journal.Disk = (*recordingDisk)(nil)

// recordDisk begins with what is there, all of it synced.
func recordDisk(t *testing.T, store string) *recordingDisk {
	t.Helper()
	d := &recordingDisk{files: map[string]*recordedFile{}, store: store, step: func() {}}
	paths := journal.Paths(store)
	for _, path := range append(paths[:], store) {
		content, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		d.files[path] = &recordedFile{disk: d, path: path, synced: content, exists: err == nil, named: err == nil}
	}
	return d
}

func (d *recordingDisk) Open(path string, create bool) (journal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step()
	f, err := d.OS.Open(path, create)
	if err != nil {
		return nil, err
	}
	r := d.files[path]
	if !r.exists {
		// A file of its own: the content of one that was removed does not come back in it.
		r = &recordedFile{disk: d, path: path, exists: true, removed: r}
		d.files[path] = r
	}
	r.File = f
	return r, nil
}

// Attach is given the store, which bbolt created if it was not there.
func (d *recordingDisk) Attach(f *os.File) journal.File {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.files[d.store]
	r.File, r.exists = d.OS.Attach(f), true
	return r
}

func (d *recordingDisk) Remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step()
	err := d.OS.Remove(path)
	if err == nil {
		d.files[path].exists = false
	}
	return err
}

func (d *recordingDisk) SyncFolder(string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step()
	for _, r := range d.files {
		r.named, r.removed = r.exists, nil
	}
	return nil
}

// recordedFile is a file and what of it is synced.
type recordedFile struct {
	journal.File
	disk *recordingDisk
	path string

	// synced is what a power loss cannot take away, written the sectors that were written since.
	// bbolt writes the store by itself: what it has written is found by comparing.
	synced  []byte
	written map[int64][]byte

	// exists tells whether the folder has it, named whether it still does after a power loss.
	exists, named bool
	// removed is a file of the same name that a power loss may bring back.
	removed *recordedFile
}

func (r *recordedFile) WriteAt(b []byte, offset int64) (int, error) {
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	r.disk.step()
	n, err := r.File.WriteAt(b, offset)
	if r.path == r.disk.store {
		return n, err
	}
	if r.written == nil {
		r.written = map[int64][]byte{}
	}
	for at := offset / sectorBytes * sectorBytes; at < offset+int64(n); at += sectorBytes {
		sector := make([]byte, sectorBytes)
		_, _ = r.ReadAt(sector, at) // The last one may be short.
		r.written[at] = sector
	}
	return n, err
}

func (r *recordedFile) Sync() error {
	// What is written while a sync is under way may be in it or not.
	begun := r.current()
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	r.disk.step()
	if r.path == r.disk.store {
		r.synced = begun
		return nil
	}
	r.synced = overlay(r.synced, r.written, always)
	r.written = nil
	return nil
}

// current is what the file holds, for the store.
func (r *recordedFile) current() []byte {
	if r.path != r.disk.store {
		return nil
	}
	content, err := os.ReadFile(r.path)
	if err != nil {
		panic(err) // It is open.
	}
	return content
}

func (r *recordedFile) Close() error { return r.File.Close() }

func always() bool { return true }

// overlay writes those of some blocks over a content that are chosen.
func overlay(content []byte, blocks map[int64][]byte, chosen func() bool) []byte {
	content = bytes.Clone(content)
	for at, block := range blocks {
		if !chosen() {
			continue
		}
		if missing := int(at) + len(block) - len(content); missing > 0 {
			content = append(content, make([]byte, missing)...)
		}
		copy(content[at:], block)
	}
	return content
}

// capture is what there was of a disk's files at one moment, written and synced.
type capture struct {
	store string
	files map[string]capturedFile
}

type capturedFile struct {
	synced        []byte
	written       map[int64][]byte
	exists, named bool
	removed       *capturedFile
}

// capture must be called with mu held. bbolt may write meanwhile: then the moment is one for each page.
func (d *recordingDisk) capture() capture {
	c := capture{store: d.store, files: map[string]capturedFile{}}
	for path, r := range d.files {
		c.files[path] = r.capture()
	}
	return c
}

func (r *recordedFile) capture() capturedFile {
	c := capturedFile{synced: bytes.Clone(r.synced), written: map[int64][]byte{}, exists: r.exists, named: r.named}
	for at, sector := range r.written {
		c.written[at] = bytes.Clone(sector)
	}
	if r.path == r.disk.store && r.exists {
		c.written = changedPages(r.synced, r.current())
	}
	if r.removed != nil {
		removed := r.removed.capture()
		c.removed = &removed
	}
	return c
}

func changedPages(before, after []byte) map[int64][]byte {
	pages := map[int64][]byte{}
	for at := 0; at < len(after); at += pageBytes {
		page := after[at:min(at+pageBytes, len(after))]
		if at+len(page) > len(before) || !bytes.Equal(page, before[at:at+len(page)]) {
			pages[int64(at)] = page
		}
	}
	return pages
}

// outcome chooses what becomes of what was not synced.
type outcome func() bool

// killed keeps all that was written: the process died and the system did not.
var killed outcome = always

// powerLoss keeps a random part, of a random share.
func powerLoss(random *rand.Rand) outcome {
	share := []float64{0, 0.1, 0.5, 0.9, 1}[random.IntN(5)]
	return func() bool { return random.Float64() < share }
}

// restore writes what is left to another folder and returns the store in it.
func (c capture) restore(t *testing.T, left outcome) string {
	t.Helper()
	folder := t.TempDir()
	for path, f := range c.files {
		content, there := f.left(left)
		if !there {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(path)), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, filepath.Base(c.store))
}

// left is what a name leads to afterwards. What was done to the folder and not synced was done or not.
func (f capturedFile) left(left outcome) (content []byte, there bool) {
	switch {
	case f.exists && (f.named || left()), !f.exists && f.named && !left():
		return overlay(f.synced, f.written, left), true
	case f.exists && f.removed != nil && f.removed.named && left():
		return overlay(f.removed.synced, f.removed.written, left), true
	default:
		return nil, false
	}
}
