// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The first two pages of a bbolt file are its meta pages. A transaction becomes
// valid when bbolt writes one of them, which says where the tree of buckets begins.
// The valid one with the higher transaction number counts. After the page's header
// of 16 bytes it holds, in the machine's byte order:
//
//	0   magic        4 bytes
//	4   version      4
//	8   page size    4
//	12  flags        4
//	16  root         8, first page of the tree of buckets, and 8 of its sequence
//	32  freelist     8
//	40  high water   8, number of pages
//	48  transaction  8
//	56  checksum     8, FNV-1a of the bytes before
const (
	metaSize       = 64
	metaPageHeader = 16
	metaMagic      = 0xED0CDAED
	metaLayout     = 2
	minPageBytes   = 1 << 10
	maxPageBytes   = 1 << 16
)

// errNoMeta is the error for a file without a valid meta page.
var errNoMeta = errors.New("neither meta page is valid: this is not a store file, or its beginning is lost")

// metaPage is the content of a meta page after its header.
type metaPage [metaSize]byte

func (m metaPage) pageSize() int64     { return int64(binary.NativeEndian.Uint32(m[8:])) }
func (m metaPage) root() uint64        { return binary.NativeEndian.Uint64(m[16:]) }
func (m metaPage) freelist() uint64    { return binary.NativeEndian.Uint64(m[32:]) }
func (m metaPage) highWater() uint64   { return binary.NativeEndian.Uint64(m[40:]) }
func (m metaPage) transaction() uint64 { return binary.NativeEndian.Uint64(m[48:]) }

// offset returns the offset in the file at which bbolt writes the content of the page.
func (m metaPage) offset() int64 {
	return int64(m.transaction()%2)*m.pageSize() + metaPageHeader
}

func (m metaPage) sum() uint64 {
	h := fnv.New64a()
	_, _ = h.Write(m[:56]) // It never fails.
	return h.Sum64()
}

func (m metaPage) valid() bool {
	order := binary.NativeEndian
	return order.Uint32(m[:]) == metaMagic && order.Uint32(m[4:]) == metaLayout && order.Uint64(m[56:]) == m.sum() &&
		m.pageSize() >= minPageBytes && m.pageSize() <= maxPageBytes
}

// readMetaPage returns the meta page that counts. It fails with [errNoMeta] if no meta page is valid.
func readMetaPage(f io.ReaderAt) (metaPage, error) {
	first, err := readMetaPageAt(f, 0)
	if err != nil {
		return first, err
	}
	second, err := readSecondMetaPage(f, first)
	switch {
	case err != nil:
		return second, err
	case !first.valid() && !second.valid():
		return metaPage{}, errNoMeta
	case first.valid() && (!second.valid() || first.transaction() > second.transaction()):
		return first, nil
	default:
		return second, nil
	}
}

// readSecondMetaPage reads the second meta page. Without a valid first one the page size is unknown.
func readSecondMetaPage(f io.ReaderAt, first metaPage) (second metaPage, err error) {
	if first.valid() {
		return readMetaPageAt(f, first.pageSize())
	}
	for size := int64(minPageBytes); size <= maxPageBytes && !second.valid(); size <<= 1 {
		if second, err = readMetaPageAt(f, size); err != nil {
			return second, err
		}
	}
	return second, nil
}

func readMetaPageAt(f io.ReaderAt, page int64) (m metaPage, err error) {
	if _, err := f.ReadAt(m[:], page+metaPageHeader); err != nil && !errors.Is(err, io.EOF) {
		return m, fmt.Errorf("reading the meta page at offset %d: %w", page, err)
	}
	return m, nil
}

// syncedFile is a file whose writes can be made durable.
type syncedFile interface {
	io.WriterAt
	Sync() error
}

// syncMetaPage makes the meta page that counts durable. It writes the bytes that the file already has.
//
// After a failed sync the operating system may show the page that it could not write, and consider it written.
// Until that page is on disk bbolt is not allowed to reuse the pages that it has freed: a power loss would leave
// the meta page before it, which still refers to them.
func syncMetaPage(f syncedFile, m metaPage) error {
	if _, err := f.WriteAt(m[:], m.offset()); err != nil {
		return fmt.Errorf("writing the meta page at offset %d: %w", m.offset(), asDiskFull(err))
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("syncing the meta page: %w", asDiskFull(err))
	}
	return nil
}
