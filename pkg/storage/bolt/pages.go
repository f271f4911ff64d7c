// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// What bbolt's own check takes for granted, and dies of when it does not hold: that
// every page is what the one above it says and ends where it should. The layout is
// that of bbolt's format 2, in the byte order of the machine that wrote the file.
const (
	headerBytes   = 16
	elementBytes  = 16
	bucketBytes   = 16
	flagBranch    = 0x01
	flagLeaf      = 0x02
	elementBucket = 0x01
)

// errNoMeta says that neither of the two pages that lead to the data can be used.
var errNoMeta = errors.New("neither meta page is valid: this is no store file, or its beginning is lost")

// pageWalk visits every page that is in use.
type pageWalk struct {
	file    io.ReaderAt
	meta    metaPage
	visited map[uint64]struct{}
	step    func(pages int64) error
	found   func(problem string)
}

// verifyPages reads the file as it is on disk, of a size in bytes. Nothing may write
// to it meanwhile.
func verifyPages(ctx context.Context, file io.ReaderAt, meta metaPage, size int64, v Verification, found func(problem string)) error {
	if need := int64(meta.highWater()) * meta.pageSize(); need > size {
		found(fmt.Sprintf("the file ends after %d bytes and should have at least %d: it was cut off", size, need))
		return nil
	}
	w := &pageWalk{
		file: file, meta: meta, visited: map[uint64]struct{}{}, found: found,
		step: func(pages int64) error { return v.step(ctx, "pages", pages) },
	}
	return w.page(meta.root(), "the file's beginning")
}

// page visits a page and what is below it.
func (w *pageWalk) page(id uint64, parent string) error {
	if err := w.step(int64(len(w.visited))); err != nil {
		return err
	}
	raw, ok, err := w.read(id, parent)
	if err != nil || !ok {
		return err
	}
	return w.elements(raw, fmt.Sprintf("page %d", id))
}

// read reads a page with what it overflows into, if its header can be believed.
func (w *pageWalk) read(id uint64, parent string) (raw []byte, ok bool, err error) {
	if id < 2 || id >= w.meta.highWater() {
		w.found(fmt.Sprintf("%s leads to page %d, and the file's pages are 2 to %d", parent, id, w.meta.highWater()-1))
		return nil, false, nil
	}
	header := make([]byte, headerBytes)
	if _, err := w.file.ReadAt(header, int64(id)*w.meta.pageSize()); err != nil {
		return nil, false, fmt.Errorf("reading page %d: %w", id, err)
	}
	order := binary.NativeEndian
	overflow := uint64(order.Uint32(header[12:]))
	switch stored := order.Uint64(header); {
	case stored != id:
		w.found(fmt.Sprintf("page %d, which %s leads to, calls itself page %d", id, parent, stored))
		return nil, false, nil
	case overflow >= w.meta.highWater()-id:
		w.found(fmt.Sprintf("page %d goes on for %d more pages, and the file ends at page %d", id, overflow, w.meta.highWater()-1))
		return nil, false, nil
	}
	for page := id; page <= id+overflow; page++ {
		if _, twice := w.visited[page]; twice {
			w.found(fmt.Sprintf("page %d, which %s leads to, is in use elsewhere", page, parent))
			return nil, false, nil
		}
		w.visited[page] = struct{}{}
	}
	raw = make([]byte, int64(overflow+1)*w.meta.pageSize())
	if _, err := w.file.ReadAt(raw, int64(id)*w.meta.pageSize()); err != nil {
		return nil, false, fmt.Errorf("reading page %d: %w", id, err)
	}
	return raw, true, nil
}

// elements visits what a page, or a bucket that is small enough to be inside of one,
// leads to.
func (w *pageWalk) elements(raw []byte, name string) error {
	order := binary.NativeEndian
	kind, count := order.Uint16(raw[8:]), int(order.Uint16(raw[10:]))
	if kind != flagBranch && kind != flagLeaf {
		w.found(fmt.Sprintf("%s is neither a branch nor a leaf: its kind is %#x", name, kind))
		return nil
	}
	if headerBytes+count*elementBytes > len(raw) {
		w.found(fmt.Sprintf("%s has no room for the %d entries that it claims", name, count))
		return nil
	}
	for i := range count {
		at := headerBytes + i*elementBytes
		var err error
		if kind == flagBranch {
			err = w.branch(raw, at, fmt.Sprintf("entry %d of %s", i, name))
		} else {
			err = w.leaf(raw, at, fmt.Sprintf("entry %d of %s", i, name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *pageWalk) branch(raw []byte, at int, name string) error {
	order := binary.NativeEndian
	position, key := int64(order.Uint32(raw[at:])), int64(order.Uint32(raw[at+4:]))
	if int64(at)+position+key > int64(len(raw)) {
		w.found(name + " lies beyond the page's end")
		return nil
	}
	return w.page(order.Uint64(raw[at+8:]), name)
}

func (w *pageWalk) leaf(raw []byte, at int, name string) error {
	order := binary.NativeEndian
	flags := order.Uint32(raw[at:])
	position, key, value := int64(order.Uint32(raw[at+4:])), int64(order.Uint32(raw[at+8:])), int64(order.Uint32(raw[at+12:]))
	start := int64(at) + position + key
	if start+value > int64(len(raw)) {
		w.found(name + " lies beyond the page's end")
		return nil
	}
	if flags&elementBucket == 0 {
		return nil
	}
	return w.bucket(raw[start:start+value], name)
}

// bucket visits a bucket: its own pages, or those inside of it.
func (w *pageWalk) bucket(raw []byte, name string) error {
	if len(raw) < bucketBytes {
		w.found(name + " is too short for a bucket")
		return nil
	}
	if root := binary.NativeEndian.Uint64(raw); root != 0 {
		return w.page(root, name)
	}
	inline := raw[bucketBytes:]
	if len(inline) < headerBytes {
		w.found(name + " is too short for a bucket")
		return nil
	}
	return w.elements(inline, "the bucket in "+name)
}
