// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
)

// Paths names the files of the journal of a file.
func Paths(path string) [2]string {
	return [2]string{path + "-journal-a", path + "-journal-b"}
}

// Journal is one that is being written. [Journal.WriteCheckpoint] may run beside the other
// methods; these are for one goroutine.
type Journal struct {
	disk  Disk
	paths [2]string
	files [2]File
	salt  uint64

	// number is that of the last checkpoint that is known to be on disk; covered is
	// the generation that its entries begin with.
	number, covered uint64

	// generation is the one that is written, end where its next entry begins, and
	// last where the last one does. sequence is the number of the last entry.
	generation, sequence uint64
	end, last            int64
}

// Create makes a journal that begins with a checkpoint, in place of any there is.
// It is on disk when Create returns. The folder must exist. Each of the two files is
// made of the given size, and grows when entries take more, at the price of slower syncs.
func Create(disk Disk, path string, size int64, cp Checkpoint) (*Journal, error) {
	j := &Journal{disk: disk, paths: Paths(path), salt: rand.Uint64(), sequence: cp.Sequence, end: firstEntry} //nolint:gosec // Part of a checksum, not a secret.
	if err := Remove(disk, path); err != nil {
		return nil, err
	}
	if err := j.create(size, cp); err != nil {
		return nil, errors.Join(fmt.Errorf("creating journal %s: %w", path, err), j.Close(), Remove(disk, path))
	}
	return j, nil
}

func (j *Journal) create(size int64, cp Checkpoint) error {
	for i, path := range j.paths {
		f, err := j.disk.Open(path, true)
		if err != nil {
			return err
		}
		j.files[i] = &syncedFile{File: f}
		if err := fillWithZeros(j.files[i], size); err != nil {
			return err
		}
	}
	if err := j.WriteCheckpoint(Mark{}, cp); err != nil {
		return err
	}
	if err := syncFile(j.files[1], j.paths[1]); err != nil {
		return err
	}
	return j.disk.SyncFolder(filepath.Dir(j.paths[0]))
}

func fillWithZeros(f File, size int64) error {
	zeros := make([]byte, min(size, 1<<20))
	for offset := int64(0); offset < size; offset += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(size-offset, int64(len(zeros)))], offset); err != nil {
			return err
		}
	}
	return nil
}

// Append writes an entry and syncs it. The entry is [HeaderSize] bytes, which Append fills
// in, and the payload after them. When it fails nothing was appended, unless
// the error is [ErrSync]: then the entry may be found by the next reader or not, and
// nothing may be appended any more.
func (j *Journal) Append(entry []byte) error {
	h := header{
		length: uint32(len(entry) - HeaderSize), generation: j.generation, sequence: j.sequence + 1, base: j.number,
	}
	h.put(entry)
	h.checksum = checksum(j.salt, entry)
	h.put(entry)
	written, err := j.current().WriteAt(entry, j.end)
	if err != nil {
		err = fmt.Errorf("appending to journal %s: %w", j.currentPath(), err)
		if written > 0 {
			err = errors.Join(err, j.erase(j.end))
		}
		return err
	}
	if err := syncFile(j.current(), j.currentPath()); err != nil {
		return err
	}
	j.last, j.end = j.end, nextEntry(j.end, len(entry))
	j.sequence++
	return nil
}

// Cut takes the last entry back, which must have been appended since the last turn. It is gone
// when Cut returns; after an error the next reader may find it or not, and
// nothing may be appended any more.
func (j *Journal) Cut() error {
	if err := j.erase(j.last); err != nil {
		return err
	}
	j.end = j.last
	j.sequence--
	return nil
}

// erase makes what was written at an offset no entry.
func (j *Journal) erase(offset int64) error {
	if _, err := j.current().WriteAt(make([]byte, HeaderSize), offset); err != nil {
		return fmt.Errorf("%w: %s cannot be cut at offset %d: %w", ErrSync, j.currentPath(), offset, err)
	}
	return syncFile(j.current(), j.currentPath())
}

func (j *Journal) current() File       { return j.files[j.generation%2] }
func (j *Journal) currentPath() string { return j.paths[j.generation%2] }

// Sequence is the number of the last entry.
func (j *Journal) Sequence() uint64 { return j.sequence }

// Bytes is how much the entries of the current generation take.
func (j *Journal) Bytes() int64 { return j.end - firstEntry }

// Mark is a place between two entries.
type Mark struct {
	number, generation uint64
}

// Turn ends the current generation if the other file is free. It returns the mark for
// the checkpoint of a state that has all entries so far in it.
func (j *Journal) Turn() Mark {
	if j.covered == j.generation {
		j.generation++
		j.end = firstEntry
	}
	return Mark{number: j.number + 1, generation: j.generation}
}

// WriteCheckpoint writes a checkpoint of the state at a mark; it is on disk when
// it returns. After an error that is not [ErrSync] it may be tried again at a
// later mark. There must be one such call at a time.
func (j *Journal) WriteCheckpoint(m Mark, cp Checkpoint) error {
	i := m.number % 2
	s := slot{Checkpoint: cp, number: m.number, generation: m.generation, salt: j.salt}
	if _, err := j.files[i].WriteAt(s.encode(), 0); err != nil {
		return fmt.Errorf("writing a checkpoint to journal %s: %w", j.paths[i], err)
	}
	return syncFile(j.files[i], j.paths[i])
}

// Release takes note that the checkpoint of a mark was written, and frees what came before it.
func (j *Journal) Release(m Mark) {
	j.number, j.covered = m.number, m.generation
}

// Close closes the files and leaves them to the next reader.
func (j *Journal) Close() error {
	var errs []error
	for i, f := range j.files {
		if f != nil {
			errs = append(errs, f.Close())
			j.files[i] = nil
		}
	}
	return errors.Join(errs...)
}

// Remove removes the journal of a file, if there is one.
func Remove(disk Disk, path string) error {
	for _, name := range Paths(path) {
		if err := disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing journal %s: %w", name, err)
		}
	}
	return nil
}
