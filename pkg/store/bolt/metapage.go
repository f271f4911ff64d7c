// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/configbutler/slipstream/pkg/store/bolt/internal/journal"
)

// The first two pages of a bbolt file are its meta pages. A transaction is made
// valid by writing one of them, which says where the tree of buckets begins; the
// one with the higher transaction number counts. Behind the page's header of 16
// bytes they hold, in the machine's byte order:
//
//	0   magic        4 bytes
//	4   version      4
//	8   page size    4
//	12  flags        4, which bbolt does not use and hands on from transaction to transaction
//	16  root         8, first page of the tree of buckets, and 8 of its sequence
//	32  freelist     8
//	40  high water   8, number of pages
//	48  transaction  8
//	56  checksum     8, FNV-1a of the bytes before
const (
	metaSize       = 64
	metaPageHeader = 16
	metaPageFlag   = 4
	metaMagic      = 0xED0CDAED
	metaLayout     = 2
	minPageBytes   = 1 << 10
	maxPageBytes   = 1 << 16
)

// What the flags of a meta page say about the file. Without any it was written by
// bbolt alone, which syncs, and is complete.
const (
	// flagClosed: the file is complete. There is no journal, or one that is obsolete.
	flagClosed = 1
	// flagJournaled: there are changes that only the journal has.
	flagJournaled = 2
)

// metaPage is the part of a meta page behind its header.
type metaPage [metaSize]byte

func (m metaPage) pageSize() int64     { return int64(binary.NativeEndian.Uint32(m[8:])) }
func (m metaPage) flags() uint32       { return binary.NativeEndian.Uint32(m[12:]) }
func (m metaPage) root() uint64        { return binary.NativeEndian.Uint64(m[16:]) }
func (m metaPage) freelist() uint64    { return binary.NativeEndian.Uint64(m[32:]) }
func (m metaPage) highWater() uint64   { return binary.NativeEndian.Uint64(m[40:]) }
func (m metaPage) transaction() uint64 { return binary.NativeEndian.Uint64(m[48:]) }

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

// with is the same state of the file under other flags, or another transaction.
func (m metaPage) with(flags uint32, transaction uint64) metaPage {
	binary.NativeEndian.PutUint32(m[12:], flags)
	binary.NativeEndian.PutUint64(m[48:], transaction)
	binary.NativeEndian.PutUint64(m[56:], m.sum())
	return m
}

// slot is the page that bbolt writes it to.
func (m metaPage) slot() int64 { return int64(m.transaction() % 2) }

// metaPages are both of a file; one that cannot be read is zero.
type metaPages [2]metaPage

// readMetaPages reads what meta pages a file has.
func readMetaPages(f io.ReaderAt) (pages metaPages, err error) {
	if pages[0], err = readMetaPage(f, 0); err != nil {
		return pages, err
	}
	if pages[0].valid() {
		pages[1], err = readMetaPage(f, pages[0].pageSize())
		return pages, err
	}
	// Nothing says how large a page is.
	for size := int64(minPageBytes); size <= maxPageBytes && !pages[1].valid(); size <<= 1 {
		if pages[1], err = readMetaPage(f, size); err != nil {
			return pages, err
		}
	}
	return pages, nil
}

func readMetaPage(f io.ReaderAt, page int64) (m metaPage, err error) {
	if _, err := f.ReadAt(m[:], page+metaPageHeader); err != nil && !errors.Is(err, io.EOF) {
		return m, fmt.Errorf("reading the meta page at offset %d: %w", page, err)
	}
	return m, nil
}

// newest is the one that counts.
func (p metaPages) newest() (metaPage, bool) {
	first, second := p[0].valid(), p[1].valid()
	switch {
	case first && second && p[0].transaction() == p[1].transaction():
		return p[p[0].slot()], true
	case first && (!second || p[0].transaction() > p[1].transaction()):
		return p[0], true
	default:
		return p[1], second
	}
}

// areOfACopy tells whether the file was written by bbolt's Tx.WriteTo, which gives a
// copy both meta pages of one state. A file that bbolt writes to never has that: each
// transaction has a root of its own.
func (p metaPages) areOfACopy() bool {
	newest, _ := p.newest()
	twin := newest.with(newest.flags(), newest.transaction()-1)
	return newest.valid() && (p[0] == twin || p[1] == twin)
}

// needJournal tells whether the file was not closed.
func (p metaPages) needJournal() bool {
	newest, found := p.newest()
	return found && newest.flags() == flagJournaled && !p.areOfACopy()
}

// putMetaPage writes a meta page to its place.
func putMetaPage(f journal.File, m metaPage, slot int64) error {
	b := make([]byte, m.pageSize())
	binary.NativeEndian.PutUint64(b, uint64(slot))
	binary.NativeEndian.PutUint16(b[8:], metaPageFlag)
	copy(b[metaPageHeader:], m[:])
	if _, err := f.WriteAt(b, slot*m.pageSize()); err != nil {
		return fmt.Errorf("writing meta page %d: %w", slot, err)
	}
	return nil
}

// markClosed makes a state that is on disk the one that the file has, and the file one that needs no
// journal. Both are so on disk when it returns, or nothing has changed.
func markClosed(f journal.File, m metaPage) error {
	if err := putMetaPage(f, m.with(flagClosed, m.transaction()), m.slot()); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := putMetaPage(f, m.with(flagClosed, m.transaction()-1), 1-m.slot()); err != nil {
		return err
	}
	return f.Sync()
}

// markJournaled makes a file that was closed one that needs its journal, which must
// be there.
func markJournaled(f journal.File, m metaPage) error {
	if err := putMetaPage(f, m.with(flagJournaled, m.transaction()), m.slot()); err != nil {
		return err
	}
	return f.Sync()
}

// restoreState puts a file back to the state of a checkpoint. The journal stays what counts.
func restoreState(f journal.File, m metaPage) error {
	return errors.Join(
		putMetaPage(f, m.with(flagJournaled, m.transaction()), m.slot()),
		putMetaPage(f, m.with(flagClosed, m.transaction()-1), 1-m.slot()),
	)
}
