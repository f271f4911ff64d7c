// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package blobcache

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

const (
	// headerSize is the size of what precedes an entry in a segment: its size and its checksum in four bytes each, and the hash of its blob.
	headerSize = 8 + len(gitrepo.Hash{})
	// segmentsPerLog is how many full segments a log has at most: with the oldest one, that part of its entries is removed at once.
	segmentsPerLog = 16
	// minSegment and maxSegment bound the size of a segment in bytes, apart from its last entry.
	minSegment, maxSegment = 4 << 10, 16 << 20
	segmentSuffix          = ".segment"
	// maxEntry bounds the size of an entry in bytes: a content that cannot be compressed, with what compression and encryption add.
	maxEntry = maxContent + maxContent/8
	// maxWrite is the size in bytes beyond which entries are written with another write.
	maxWrite = 1 << 20
	// readBuffer is the size in bytes of the reads while a log is opened.
	readBuffer = 256 << 10
)

// entry is the stored content of a blob.
type entry struct {
	blob   gitrepo.Hash
	stored []byte
}

// appendTo appends the entry to the text of a segment.
func (e entry) appendTo(text []byte) []byte {
	text = binary.BigEndian.AppendUint32(text, uint32(len(e.stored)))
	text = binary.BigEndian.AppendUint32(text, e.checksum())
	return append(append(text, e.blob[:]...), e.stored...)
}

func (e entry) checksum() uint32 {
	return crc32.Update(crc32.Checksum(e.blob[:], castagnoli), castagnoli, e.stored)
}

// castagnoli is the table of the checksums, which processors compute.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// parse returns the entry of a part of a segment. ok is false if it is damaged.
func parse(text []byte) (e entry, ok bool) {
	e = entry{gitrepo.Hash(text[8:headerSize]), text[headerSize:]}
	return e, binary.BigEndian.Uint32(text[4:]) == e.checksum()
}

// segmentLog stores entries by the hash of their blob, in files that are only appended to: the segments. To write some entries is one
// write to one file. When the segments are too large, the oldest one is removed. Writes are not synced: after a crash, entries may be
// damaged, and are missing. It is safe for concurrent use.
type segmentLog struct {
	dir      string
	maxBytes int64

	mu sync.Mutex
	// segments are the segments, oldest first; entries are added to the last one.
	segments []*segment
	// places are where entries are, by the first bytes of their blob's hash. Of two blobs that have these in common, one is missing.
	places map[uint64]place
}

// segment is a file of a log.
type segment struct {
	file   *os.File
	number int
	size   int64
}

// place is the place of an entry with its header.
type place struct {
	// segment is the number of the segment.
	segment uint32
	offset  uint32
	size    uint32
}

// keyOf returns the key of a blob's place.
func keyOf(blob gitrepo.Hash) uint64 { return binary.BigEndian.Uint64(blob[:]) }

// openLog opens a log, with the entries of earlier processes.
func openLog(dir string, maxBytes int64) (*segmentLog, error) {
	l := &segmentLog{dir: dir, maxBytes: maxBytes, places: map[uint64]place{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of cached contents: %w", err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list cached contents: %w", err)
	}
	for _, each := range files {
		text, _ := strings.CutSuffix(each.Name(), segmentSuffix)
		number, err := strconv.ParseUint(text, 10, 31)
		if err != nil || !each.Type().IsRegular() || l.path(int(number)) != filepath.Join(dir, each.Name()) {
			continue // It is not a file of the log.
		}
		if err := l.load(int(number)); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	slices.SortFunc(l.segments, func(a, b *segment) int { return cmp.Compare(a.number, b.number) })
	return l, nil
}

// load opens a segment and reads which entries it has. What follows the last complete one is cut off.
func (l *segmentLog) load(number int) error {
	file, err := os.OpenFile(l.path(number), os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open cached contents: %w", err)
	}
	s := &segment{file: file, number: number}
	l.segments = append(l.segments, s)
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("open cached contents: %w", err)
	}
	l.read(s, info.Size())
	if err := file.Truncate(s.size); err != nil {
		return fmt.Errorf("open cached contents: %w", err)
	}
	return nil
}

// read reads which entries a segment has, and sets its size to the end of the last complete one.
func (l *segmentLog) read(s *segment, size int64) {
	content := bufio.NewReaderSize(io.NewSectionReader(s.file, 0, size), readBuffer)
	var header [headerSize]byte
	for {
		if _, err := io.ReadFull(content, header[:]); err != nil {
			return
		}
		stored := int(binary.BigEndian.Uint32(header[:]))
		if stored == 0 || stored > maxEntry || s.size > maxSegment+maxWrite {
			return
		}
		if _, err := content.Discard(stored); err != nil {
			return
		}
		blob := gitrepo.Hash(header[8:])
		if at, exists := l.places[keyOf(blob)]; !exists || int(at.segment) <= s.number {
			l.places[keyOf(blob)] = place{segment: uint32(s.number), offset: uint32(s.size), size: uint32(headerSize + stored)}
		}
		s.size += int64(headerSize + stored)
	}
}

func (l *segmentLog) path(number int) string {
	return filepath.Join(l.dir, strconv.Itoa(number)+segmentSuffix)
}

// close closes the files.
func (l *segmentLog) close() error {
	var errs []error
	for _, s := range l.segments {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(errs...)
}

// has reports whether the log has an entry for a blob, without reading it.
func (l *segmentLog) has(blob gitrepo.Hash) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, found := l.places[keyOf(blob)]
	return found
}

// get returns the entry of a blob, and its place. An entry in the older half of the log is added again, so that it is not removed soon.
func (l *segmentLog) get(blob gitrepo.Hash) (stored []byte, at place, found bool) {
	l.mu.Lock()
	at, s, old := l.locate(blob)
	l.mu.Unlock()
	if s == nil {
		return nil, at, false
	}
	text := make([]byte, at.size)
	_, err := s.file.ReadAt(text, int64(at.offset)) // The segment may be removed meanwhile, and its file closed.
	e, ok := parse(text)
	if err != nil || !ok || e.blob != blob {
		l.forget(blob, at)
		return nil, at, false
	}
	if old {
		l.renew(e, at)
	}
	return e.stored, at, true
}

// renew adds an entry again, unless it was replaced meanwhile.
func (l *segmentLog) renew(e entry, at place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places[keyOf(e.blob)] == at {
		_ = l.write([]entry{e}, headerSize+len(e.stored)) // Otherwise it is removed earlier.
	}
}

// locate returns the place of a blob's entry, its segment, and whether that is in the older half of the log. The segment is nil if there is
// no entry. The caller holds the lock.
func (l *segmentLog) locate(blob gitrepo.Hash) (at place, s *segment, old bool) {
	at, found := l.places[keyOf(blob)]
	if !found {
		return at, nil, false
	}
	i, found := slices.BinarySearchFunc(l.segments, int(at.segment), func(s *segment, number int) int { return cmp.Compare(s.number, number) })
	if !found {
		return at, nil, false
	}
	newer := int64(0)
	for _, other := range l.segments[i+1:] {
		newer += other.size
	}
	return at, l.segments[i], newer > l.maxBytes/2
}

// forget removes the entry of a blob, unless it is at another place by now.
func (l *segmentLog) forget(blob gitrepo.Hash, at place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places[keyOf(blob)] == at {
		delete(l.places, keyOf(blob))
	}
}

// add adds entries, or replaces them. After an error, the log may lack some of them.
func (l *segmentLog) add(entries ...entry) error {
	entries = slices.DeleteFunc(entries, func(e entry) bool { return int64(len(e.stored)) > l.maxBytes/2 }) // It would remove most others.
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(entries) > 0 {
		count, size := 0, 0
		for count < len(entries) && (count == 0 || size < maxWrite) {
			size += headerSize + len(entries[count].stored)
			count++
		}
		if err := l.write(entries[:count], size); err != nil {
			return err
		}
		entries = entries[count:]
	}
	return nil
}

// write writes entries, which have a size with their headers. The caller holds the lock.
func (l *segmentLog) write(entries []entry, size int) error {
	text := make([]byte, 0, size)
	for _, e := range entries {
		text = e.appendTo(text)
	}
	s, err := l.active()
	if err != nil {
		return err
	}
	if _, err := s.file.WriteAt(text, s.size); err != nil {
		return fmt.Errorf("write cached contents: %w", errors.Join(err, s.file.Truncate(s.size)))
	}
	for _, e := range entries {
		size := headerSize + len(e.stored)
		l.places[keyOf(e.blob)] = place{segment: uint32(s.number), offset: uint32(s.size), size: uint32(size)}
		s.size += int64(size)
	}
	return l.evict()
}

// active returns the segment to which entries are added. The caller holds the lock.
func (l *segmentLog) active() (*segment, error) {
	number := 1
	if last := len(l.segments) - 1; last >= 0 {
		if l.segments[last].size < min(max(l.maxBytes/segmentsPerLog, minSegment), maxSegment) {
			return l.segments[last], nil
		}
		number = l.segments[last].number + 1
	}
	// The folder may have been removed to free disk space.
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of cached contents: %w", err)
	}
	file, err := os.OpenFile(l.path(number), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create a file of cached contents: %w", err)
	}
	s := &segment{file: file, number: number}
	l.segments = append(l.segments, s)
	return s, nil
}

// evict removes the oldest segments, until the others fit into the space. The caller holds the lock.
func (l *segmentLog) evict() error {
	bytes := int64(0)
	for _, s := range l.segments {
		bytes += s.size
	}
	for bytes > l.maxBytes && len(l.segments) > 0 {
		oldest := l.segments[0]
		if err := os.Remove(l.path(oldest.number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove cached contents: %w", err)
		}
		_ = oldest.file.Close() // It has been removed.
		l.segments = l.segments[1:]
		bytes -= oldest.size
		for key, at := range l.places {
			if int(at.segment) == oldest.number {
				delete(l.places, key)
			}
		}
	}
	return nil
}
