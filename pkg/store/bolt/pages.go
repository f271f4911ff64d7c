// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
)

// What bbolt takes for granted, and dies of when it does not hold: that every page is what
// the one above it says, ends where it should, and has its keys in order. bbolt looks at the
// pages in a goroutine of its own when it opens a file, so neither a panic nor a fault of the
// mapped memory can be caught there: all of it is checked before. The layout is that of
// bbolt's format 2, in the byte order of the machine that wrote the file.
const (
	headerBytes   = 16
	elementBytes  = 16
	bucketBytes   = 16
	flagBranch    = 0x01
	flagLeaf      = 0x02
	flagFreelist  = 0x10
	elementBucket = 0x01
	// longestKey is the longest key that bbolt takes.
	longestKey = 32768
	// maxDepth bounds the pages one above the other. A tree of 2^32 pages has fewer.
	maxDepth = 64
	// noFreelist is what a meta page names when the free pages are those that nothing uses.
	noFreelist = ^uint64(0)
)

// pageWalk visits every page that is in use. Its memory does not depend on what the pages
// claim: one bit for each page of the file, and one page at a time.
type pageWalk struct {
	file io.ReaderAt
	meta metaPage
	// visited has a bit for each page, pages counts those that are set.
	visited []uint64
	pages   int64
	step    func(pages int64) error
	found   func(problem string)
}

// bounds are the keys between which those of a page must lie: not below least, and below
// limit. Nil is no bound.
type bounds struct{ least, limit []byte }

// verifyPages reads the file as it is on disk, of a size in bytes. Nothing may write
// to it meanwhile.
func verifyPages(ctx context.Context, file io.ReaderAt, meta metaPage, size int64, v Verification, found func(problem string)) error {
	if pages := uint64(size / meta.pageSize()); meta.highWater() > pages {
		found(fmt.Sprintf("the file ends after %d bytes and should have at least %d pages of %d: it was cut off", size, meta.highWater(),
			meta.pageSize()))
		return nil
	}
	w := &pageWalk{
		file: file, meta: meta, visited: make([]uint64, meta.highWater()/64+1), found: found,
		step: func(pages int64) error { return v.step(ctx, "pages", pages) },
	}
	if _, err := w.page(meta.root(), text("the file's beginning"), 0, bounds{}); err != nil {
		return err
	}
	return w.freelist()
}

// visit notes that a page is in use, and reports whether it was before.
func (w *pageWalk) visit(id uint64) (twice bool) {
	word, bit := id/64, uint64(1)<<(id%64)
	twice = w.visited[word]&bit != 0
	w.visited[word] |= bit
	w.pages++
	return twice
}

// page visits a page and what is below it. It returns the last key there.
func (w *pageWalk) page(id uint64, parent fmt.Stringer, depth int, b bounds) (last []byte, err error) {
	if err := w.step(w.pages); err != nil {
		return nil, err
	}
	if depth > maxDepth {
		w.found(fmt.Sprintf("%s refers to page %d at depth %d: no tree is that deep", parent, id, depth))
		return nil, nil
	}
	p, ok, err := w.read(id, parent)
	if err != nil || !ok {
		return nil, err
	}
	if p.kind() == flagBranch {
		return w.branches(p, depth, b)
	}
	return w.leaves(p, depth, b)
}

// read reads a page, if its header can be believed.
func (w *pageWalk) read(id uint64, parent fmt.Stringer) (p filePage, ok bool, err error) {
	if id < 2 || id >= w.meta.highWater() {
		w.found(fmt.Sprintf("%s refers to page %d, and the file's pages are 2 to %d", parent, id, w.meta.highWater()-1))
		return p, false, nil
	}
	first := make([]byte, w.meta.pageSize())
	if _, err := w.file.ReadAt(first, int64(id)*w.meta.pageSize()); err != nil {
		return p, false, fmt.Errorf("reading page %d: %w", id, err)
	}
	order := binary.NativeEndian
	overflow := uint64(order.Uint32(first[12:]))
	switch stored := order.Uint64(first); {
	case stored != id:
		w.found(fmt.Sprintf("page %d, which %s refers to, has the number %d", id, parent, stored))
		return p, false, nil
	case overflow >= w.meta.highWater()-id:
		w.found(fmt.Sprintf("page %d continues for %d more pages, and the file ends at page %d", id, overflow, w.meta.highWater()-1))
		return p, false, nil
	}
	for each := id; each <= id+overflow; each++ {
		if w.visit(each) {
			w.found(fmt.Sprintf("page %d, which %s refers to, is in use elsewhere", each, parent))
			return p, false, nil
		}
	}
	p = filePage{name: pageName(id), size: int64(overflow+1) * w.meta.pageSize(), start: first}
	p.source = io.NewSectionReader(w.file, int64(id)*w.meta.pageSize(), p.size)
	ok, err = p.load(w.found, flagBranch, flagLeaf)
	return p, ok, err
}

// branches visits what a branch page leads to.
func (w *pageWalk) branches(p filePage, depth int, b bounds) (last []byte, err error) {
	if p.count() == 0 {
		w.found(fmt.Sprintf("%s is a branch without entries", p.name))
		return nil, nil
	}
	order := binary.NativeEndian
	key, ok, err := w.key(p, 0)
	if err != nil || !ok {
		return nil, err
	}
	last = b.least
	for i := range p.count() {
		next, limit := []byte(nil), b.limit
		if i+1 < p.count() {
			if next, ok, err = w.key(p, i+1); err != nil || !ok {
				return nil, err
			}
			limit = next
		}
		if !w.inOrder(p, i, key, last, b.limit) {
			return nil, nil
		}
		child := order.Uint64(p.element(i)[8:])
		if last, err = w.page(child, p.entry(i), depth+1, bounds{least: key, limit: limit}); err != nil {
			return nil, err
		}
		key = next
	}
	return last, nil
}

// leaves visits the records of a leaf page, and the buckets among them.
func (w *pageWalk) leaves(p filePage, depth int, b bounds) (last []byte, err error) {
	order := binary.NativeEndian
	last = b.least
	for i := range p.count() {
		key, ok, err := w.key(p, i)
		if err != nil || !ok {
			return nil, err
		}
		if !w.inOrder(p, i, key, last, b.limit) {
			return nil, nil
		}
		last = key
		element := p.element(i)
		if order.Uint32(element)&elementBucket == 0 {
			continue
		}
		at := p.position(i) + int64(len(key))
		if err := w.bucket(p, at, int64(order.Uint32(element[12:])), p.entry(i), depth); err != nil {
			return nil, err
		}
	}
	return last, nil
}

// key reads the key of an entry, if the entry lies within its page.
func (w *pageWalk) key(p filePage, i int) (key []byte, ok bool, err error) {
	length, value := p.lengths(i)
	switch {
	case p.position(i)+length+value > p.size:
		w.found(fmt.Sprintf("%s lies beyond the page's end", p.entry(i)))
		return nil, false, nil
	case length == 0 || length > longestKey:
		w.found(fmt.Sprintf("%s has a key of %d bytes, must be 1 to %d", p.entry(i), length, longestKey))
		return nil, false, nil
	}
	if key, err = p.bytes(p.position(i), length); err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", p.entry(i), err)
	}
	return key, true, nil
}

// inOrder checks a key against the one before it and against the bounds of its page. The
// first key of a page may be the one that leads to the page.
func (w *pageWalk) inOrder(p filePage, i int, key, last, limit []byte) bool {
	compared := bytes.Compare(last, key)
	if last != nil && (compared > 0 || compared == 0 && i > 0) || limit != nil && bytes.Compare(key, limit) >= 0 {
		w.found(fmt.Sprintf("%s has the key %q, which is not in order", p.entry(i), shortened(key)))
		return false
	}
	return true
}

// bucket visits a bucket: its own pages, or those inside of it.
func (w *pageWalk) bucket(p filePage, at, size int64, name fmt.Stringer, depth int) error {
	if size < bucketBytes {
		w.found(fmt.Sprintf("%s is too short for a bucket", name))
		return nil
	}
	header, err := p.bytes(at, bucketBytes)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if root := binary.NativeEndian.Uint64(header); root != 0 {
		_, err := w.page(root, name, depth+1, bounds{})
		return err
	}
	if size < bucketBytes+headerBytes {
		w.found(fmt.Sprintf("%s is too short for a bucket", name))
		return nil
	}
	inline := filePage{name: inlineName{name}, size: size - bucketBytes}
	inline.source = io.NewSectionReader(p.source, at+bucketBytes, inline.size)
	ok, err := inline.load(w.found, flagLeaf)
	if err == nil && ok {
		_, err = w.leaves(inline, depth+1, bounds{})
	}
	return err
}
