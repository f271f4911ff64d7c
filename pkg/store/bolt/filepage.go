// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// filePage is a page with what it overflows into, or a bucket that is small enough to be inside
// of one. Of a page that overflows only the beginning is in memory, and the table of its entries.
type filePage struct {
	name   fmt.Stringer
	source io.ReaderAt
	size   int64
	// start is as much of the page as is in memory.
	start []byte
	// head is the header with the table of entries.
	head []byte
}

// load reads the header and the table of entries, if there is room for it and the page is of
// one of the kinds.
func (p *filePage) load(found func(problem string), kinds ...uint16) (ok bool, err error) {
	if p.head, err = p.bytes(0, headerBytes); err != nil {
		return false, fmt.Errorf("reading %s: %w", p.name, err)
	}
	size := headerBytes + p.count()*elementBytes
	switch {
	case !slices.Contains(kinds, p.kind()) && len(kinds) > 1:
		found(fmt.Sprintf("%s is neither a branch nor a leaf: its kind is %#x", p.name, p.kind()))
		return false, nil
	case !slices.Contains(kinds, p.kind()):
		found(fmt.Sprintf("%s is of the kind %#x, must be %#x", p.name, p.kind(), kinds[0]))
		return false, nil
	case int64(size) > p.size:
		found(fmt.Sprintf("%s has no room for the %d entries in its header", p.name, p.count()))
		return false, nil
	}
	if p.head, err = p.bytes(0, int64(size)); err != nil {
		return false, fmt.Errorf("reading %s: %w", p.name, err)
	}
	return true, nil
}

// bytes reads a part of the page.
func (p filePage) bytes(at, size int64) ([]byte, error) {
	if at+size <= int64(len(p.start)) {
		return p.start[at : at+size], nil
	}
	part := make([]byte, size)
	_, err := p.source.ReadAt(part, at)
	return part, err
}

func (p filePage) kind() uint16 { return binary.NativeEndian.Uint16(p.head[8:]) }
func (p filePage) count() int   { return int(binary.NativeEndian.Uint16(p.head[10:])) }

// element is the entry's place in the table.
func (p filePage) element(i int) []byte { return p.head[headerBytes+i*elementBytes:][:elementBytes] }

// entry names an entry.
func (p filePage) entry(i int) fmt.Stringer { return entryName{p.name, i} }

// Names of places in the file. They become text only when something is wrong there.
type (
	text      string
	pageName  uint64
	entryName struct {
		of fmt.Stringer
		i  int
	}
	inlineName struct{ in fmt.Stringer }
)

func (t text) String() string       { return string(t) }
func (id pageName) String() string  { return fmt.Sprintf("page %d", uint64(id)) }
func (n entryName) String() string  { return fmt.Sprintf("entry %d of %s", n.i, n.of) }
func (n inlineName) String() string { return fmt.Sprintf("the bucket in %s", n.in) }

// position is where an entry's key begins. The value follows.
func (p filePage) position(i int) int64 {
	at := 0
	if p.kind() == flagLeaf {
		at = 4 // Behind the flags.
	}
	return headerBytes + int64(i)*elementBytes + int64(binary.NativeEndian.Uint32(p.element(i)[at:]))
}

// lengths are those of an entry's key and value, in bytes.
func (p filePage) lengths(i int) (key, value int64) {
	element := p.element(i)
	if p.kind() == flagLeaf {
		return int64(binary.NativeEndian.Uint32(element[8:])), int64(binary.NativeEndian.Uint32(element[12:]))
	}
	return int64(binary.NativeEndian.Uint32(element[4:])), 0
}

// freelist checks the list of free pages, of which the engine's files have none once they
// have been written to: each must be a page of the file that nothing uses, and named once.
func (w *pageWalk) freelist() error {
	id := w.meta.freelist()
	if id == noFreelist {
		return nil
	}
	p, ok, err := w.readFreelist(id)
	if err != nil || !ok {
		return err
	}
	order := binary.NativeEndian
	count, at := int64(p.count()), int64(headerBytes)
	number := make([]byte, 8)
	if count == 0xFFFF { // The first entry says how many there are.
		if _, err := p.source.ReadAt(number, at); err != nil {
			return fmt.Errorf("reading the free list: %w", err)
		}
		count, at = int64(order.Uint64(number)), at+8
	}
	if count < 0 || count > (p.size-at)/8 {
		w.found(fmt.Sprintf("the free list has no room for the %d pages in its header", count))
		return nil
	}
	for i := range count {
		if _, err := p.source.ReadAt(number, at+i*8); err != nil {
			return fmt.Errorf("reading the free list: %w", err)
		}
		if free := order.Uint64(number); free < 2 || free >= w.meta.highWater() {
			w.found(fmt.Sprintf("the free list has page %d, and the file's pages are 2 to %d", free, w.meta.highWater()-1))
		} else if w.visit(free) {
			w.found(fmt.Sprintf("the free list has page %d, which is in use", free))
		}
	}
	return nil
}

// readFreelist reads the page of the free list, if its header can be believed.
func (w *pageWalk) readFreelist(id uint64) (p filePage, ok bool, err error) {
	const name = text("the free list")
	if id < 2 || id >= w.meta.highWater() {
		w.found(fmt.Sprintf("%s is at page %d, and the file's pages are 2 to %d", name, id, w.meta.highWater()-1))
		return p, false, nil
	}
	header := make([]byte, headerBytes)
	if _, err := w.file.ReadAt(header, int64(id)*w.meta.pageSize()); err != nil {
		return p, false, fmt.Errorf("reading %s: %w", name, err)
	}
	p = filePage{name: name, head: header}
	overflow := uint64(binary.NativeEndian.Uint32(header[12:]))
	if stored := binary.NativeEndian.Uint64(header); stored != id || p.kind() != flagFreelist || overflow >= w.meta.highWater()-id {
		w.found(fmt.Sprintf("%s is at page %d, which has the number %d, the kind %#x and %d more pages", name, id, stored, p.kind(), overflow))
		return p, false, nil
	}
	for each := id; each <= id+overflow; each++ {
		if w.visit(each) {
			w.found(fmt.Sprintf("%s is at page %d, which is in use", name, each))
			return p, false, nil
		}
	}
	p.size = int64(overflow+1) * w.meta.pageSize()
	p.source = io.NewSectionReader(w.file, int64(id)*w.meta.pageSize(), p.size)
	return p, true, nil
}

// shortened is a key as a finding shows it.
func shortened(key []byte) []byte {
	const most = 200
	if len(key) > most {
		return append(slices.Clone(key[:most]), "..."...)
	}
	return key
}
