// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// ErrDamaged says that a journal lacks entries or a checkpoint that were once on
// disk. The store cannot be brought to the state that its writers were told.
var ErrDamaged = errors.New("journal is damaged")

// Recovered is what a journal holds for the file that it protects.
type Recovered struct {
	Checkpoint

	paths  [2]string
	files  [2]File
	slot   slot
	places []place
}

// place is where an entry is.
type place struct {
	file   int
	offset int64
	length int
}

// Read reads the journal of a file and checks all of it. It returns nil if there
// is none, and [ErrDamaged] if it is not whole. It changes nothing.
func Read(disk Disk, path string) (*Recovered, error) {
	r := &Recovered{paths: Paths(path)}
	found, err := r.open(disk)
	if err == nil && found {
		found, err = r.readSlots()
	}
	if err == nil && found {
		err = r.findEntries()
	}
	if err != nil || !found {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// open opens the files there are.
func (r *Recovered) open(disk Disk) (found bool, err error) {
	for i, path := range r.paths {
		f, err := disk.Open(path, false)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("opening journal %s: %w", path, err)
		}
		r.files[i], found = f, true
	}
	return found, nil
}

// readSlots finds the last checkpoint. A journal without one was never finished.
func (r *Recovered) readSlots() (found bool, err error) {
	for i, f := range r.files {
		if f == nil {
			continue
		}
		b := make([]byte, sector)
		if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
			return false, fmt.Errorf("reading journal %s: %w", r.paths[i], err)
		}
		if s, valid := decodeSlot(b); valid && (!found || s.number > r.slot.number) {
			r.slot, found = s, true
		}
	}
	r.Checkpoint = r.slot.Checkpoint
	for i, f := range r.files {
		if found && f == nil {
			return false, fmt.Errorf("%w: %s is missing: put it back, or restore a backup of the store", ErrDamaged, r.paths[i])
		}
	}
	return found, nil
}

// findEntries finds the entries that come after the checkpoint, in the generation
// that it names and the one after that.
func (r *Recovered) findEntries() error {
	next := r.Sequence + 1
	for generation := r.slot.generation; generation <= r.slot.generation+1; generation++ {
		var err error
		if next, err = r.readGeneration(generation, next); err != nil {
			return err
		}
	}
	return nil
}

// readGeneration walks over the entries of a generation and returns the sequence
// number that the next one begins with.
func (r *Recovered) readGeneration(generation, next uint64) (uint64, error) {
	file := int(generation % 2)
	size, err := r.files[file].Size()
	if err != nil {
		return 0, fmt.Errorf("reading journal %s: %w", r.paths[file], err)
	}
	offset := int64(firstEntry)
	for {
		h, found, err := r.entryAt(file, offset, size)
		if err != nil {
			return 0, err
		}
		if !found || h.generation != generation || h.sequence > next || h.base > r.slot.number {
			return next, r.checkEnd(file, offset, size, generation, next)
		}
		length := HeaderSize + int(h.length)
		if h.sequence == next {
			r.places = append(r.places, place{file: file, offset: offset, length: length})
			next++
		}
		offset = nextEntry(offset, length)
	}
}

// checkEnd makes sure that what cannot be read at an offset is the journal's end.
func (r *Recovered) checkEnd(file int, end, size int64, generation, next uint64) error {
	for offset := end; offset < size; offset += sector {
		h, found, err := r.entryAt(file, offset, size)
		if err != nil {
			return err
		}
		switch {
		case !found:
		case h.base > r.slot.number:
			return fmt.Errorf("%w: the checkpoint at offset 0 of %s cannot be read, and entries after it can: restore a backup of the store",
				ErrDamaged, r.paths[h.base%2])
		case h.generation == generation && h.sequence >= next:
			return fmt.Errorf("%w: %s cannot be read at offset %d, where entry %d should be, but entry %d at offset %d can: restore a backup of the store",
				ErrDamaged, r.paths[file], end, next, h.sequence, offset)
		}
	}
	return nil
}

// entryAt reads the header of the entry at an offset; found tells whether a whole
// and valid entry of this journal is there.
func (r *Recovered) entryAt(file int, offset, size int64) (h header, found bool, err error) {
	if offset+HeaderSize > size {
		return header{}, false, nil
	}
	var b [HeaderSize]byte
	if err := r.read(file, b[:], offset); err != nil {
		return header{}, false, err
	}
	h, found = getHeader(b[:])
	if !found || int64(h.length) > size-offset-HeaderSize {
		return header{}, false, nil
	}
	entry := make([]byte, HeaderSize+int(h.length))
	if err := r.read(file, entry, offset); err != nil {
		return header{}, false, err
	}
	return h, checksum(r.slot.salt, entry) == h.checksum, nil
}

func (r *Recovered) read(file int, b []byte, offset int64) error {
	if _, err := r.files[file].ReadAt(b, offset); err != nil {
		return fmt.Errorf("reading journal %s at offset %d: %w", r.paths[file], offset, err)
	}
	return nil
}

// Len is how many entries there are to be replayed.
func (r *Recovered) Len() int { return len(r.places) }

// Replay gives the payloads of the entries after the checkpoint, in order, to a function. The first
// has the sequence number after the checkpoint's. What it passes may be kept.
func (r *Recovered) Replay(visit func(sequence uint64, payload []byte) error) error {
	for i, p := range r.places {
		entry := make([]byte, p.length)
		if err := r.read(p.file, entry, p.offset); err != nil {
			return err
		}
		sequence := r.Sequence + 1 + uint64(i)
		if err := visit(sequence, entry[HeaderSize:]); err != nil {
			return fmt.Errorf("replaying entry %d of journal %s: %w", sequence, r.paths[p.file], err)
		}
	}
	return nil
}

// Close closes the files. There may be nothing recovered.
func (r *Recovered) Close() error {
	if r == nil {
		return nil
	}
	var errs []error
	for i, f := range r.files {
		if f != nil {
			errs = append(errs, f.Close())
			r.files[i] = nil
		}
	}
	return errors.Join(errs...)
}
