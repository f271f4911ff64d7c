// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

const (
	// maxKept bounds the trees and commits that are held at a time while a pack is read, in bytes.
	maxKept = 1 << 30
	// maxObject bounds one tree or commit.
	maxObject = 128 << 20
)

// errTooLarge says that a pack was given up because of its size.
var errTooLarge = errors.New("the pack is larger than expected")

// objects are the trees and commits of a pack, and its small blobs where they were asked for.
type objects struct {
	trees   map[Hash][]byte
	commits map[Hash][]byte
	blobs   map[Hash][]byte
}

type packReader struct {
	scanner *packfile.Scanner
	found   objects
	// blobs is the size up to which blobs are kept; zero for none.
	blobs int64
	// bases finds what an offset delta is made against. What is missing here is a blob, and so is the delta's result.
	bases map[int64]keptObject
	named map[Hash]keptObject
	kept  int64
}

type keptObject struct {
	kind    plumbing.ObjectType
	content []byte
}

// readPack reads a pack from a stream, of which at most limit bytes are taken. It keeps blobs of up to so many bytes.
// Objects need not be checked for damage: callers find them by the hashes that are made here.
func readPack(stream io.Reader, limit, blobs int64) (objects, error) {
	source := &packSource{stream: stream, left: limit}
	reader := packReader{
		scanner: packfile.NewScanner(source),
		found:   objects{trees: map[Hash][]byte{}, commits: map[Hash][]byte{}, blobs: map[Hash][]byte{}},
		blobs:   blobs,
		bases:   map[int64]keptObject{},
		named:   map[Hash]keptObject{},
	}
	err := reader.readAll()
	switch {
	case source.failure != nil:
		return objects{}, fmt.Errorf("read the pack: %w", source.failure)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, packfile.ErrEmptyPackfile):
		return objects{}, errors.New("read the pack: the connection ended early")
	case err != nil:
		return objects{}, refuse(Protocol, "the server sent a broken pack: %v", err)
	}
	return reader.found, nil
}

func (r *packReader) readAll() error {
	_, count, err := r.scanner.Header()
	if err != nil {
		return err
	}
	for range count {
		header, err := r.scanner.NextObjectHeader()
		if err != nil {
			return err
		}
		if err := r.readObject(header); err != nil {
			return err
		}
	}
	_, err = r.scanner.Checksum()
	return err
}

func (r *packReader) readObject(header *packfile.ObjectHeader) error {
	switch header.Type {
	case plumbing.TreeObject, plumbing.CommitObject:
		content, err := r.inflate(header)
		if err != nil {
			return err
		}
		return r.keep(header.Offset, keptObject{kind: header.Type, content: content})
	case plumbing.OFSDeltaObject:
		return r.readDelta(header, r.bases[header.OffsetReference])
	case plumbing.REFDeltaObject:
		return r.readDelta(header, r.named[header.Reference])
	case plumbing.BlobObject:
		if header.Length > r.blobs || r.blobs == 0 {
			return r.skip()
		}
		content, err := r.inflate(header)
		if err != nil {
			return err
		}
		return r.keep(header.Offset, keptObject{kind: header.Type, content: content})
	default:
		return r.skip()
	}
}

// skip reads over an object.
func (r *packReader) skip() error {
	_, _, err := r.scanner.NextObject(io.Discard)
	return err
}

func (r *packReader) readDelta(header *packfile.ObjectHeader, base keptObject) error {
	if base.content == nil {
		return r.skip()
	}
	delta, err := r.inflate(header)
	if err != nil {
		return err
	}
	content, err := packfile.PatchDelta(base.content, delta)
	if err != nil {
		return err
	}
	return r.keep(header.Offset, keptObject{kind: base.kind, content: content})
}

func (r *packReader) inflate(header *packfile.ObjectHeader) ([]byte, error) {
	if header.Length > maxObject {
		return nil, fmt.Errorf("an object of %d bytes is too large", header.Length)
	}
	var content bytes.Buffer
	content.Grow(int(min(header.Length, answerBuffer)))
	written, _, err := r.scanner.NextObject(&content)
	if err == nil && written != header.Length {
		err = fmt.Errorf("an object is %d bytes long instead of %d", written, header.Length)
	}
	return content.Bytes(), err
}

func (r *packReader) keep(offset int64, object keptObject) error {
	r.kept += int64(len(object.content))
	if r.blobs > 0 && r.kept > maxContents {
		return errTooLarge
	}
	if r.kept > maxKept || len(object.content) > maxObject {
		return errors.New("its trees and commits are too large")
	}
	if object.content == nil {
		object.content = []byte{} // The empty tree; nil would say blob.
	}
	hash := objectHash(object.kind, object.content)
	r.bases[offset], r.named[hash] = object, object
	switch object.kind {
	case plumbing.TreeObject:
		r.found.trees[hash] = object.content
	case plumbing.BlobObject:
		r.found.blobs[hash] = object.content
	default:
		r.found.commits[hash] = object.content
	}
	return nil
}

// packSource remembers what ended a stream early: the pack's parser would call it damage.
type packSource struct {
	stream  io.Reader
	left    int64
	failure error
}

func (s *packSource) Read(buffer []byte) (int, error) {
	if s.left <= 0 {
		s.failure = errTooLarge
		return 0, s.failure
	}
	count, err := s.stream.Read(buffer[:min(int64(len(buffer)), s.left)])
	s.left -= int64(count)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failure = err
	}
	return count, err
}
