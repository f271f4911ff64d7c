// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// objectOverhead bounds the memory that an object takes beside its content, in bytes: map entries and the rounding of
// allocations.
const objectOverhead = 512

// errFound is returned by a visitor that needs nothing more from the pack.
var errFound = errors.New("everything has been found")

// packVisitor receives the objects of a pack in order. It must read each one's content or skip it.
type packVisitor interface {
	visit(ctx context.Context, pack *packStream, header *packfile.ObjectHeader) error
}

// packStream is a pack that is read sequentially from a server.
type packStream struct {
	scanner *packfile.Scanner
	budget  *budget
}

// baseObject is a possible base of later deltas.
type baseObject struct {
	kind    plumbing.ObjectType
	content []byte
}

// readPack reads a pack of at most limit bytes from a stream and calls the visitor for each object. It does not check
// objects for damage: callers find them by hashes that are computed from what was read.
func readPack(ctx context.Context, stream io.Reader, limit int64, budget *budget, visitor packVisitor) error {
	source := &packSource{stream: stream, left: limit}
	err := (&packStream{scanner: packfile.NewScanner(source), budget: budget}).readAll(ctx, visitor)
	switch {
	case err == nil, errors.Is(err, errFound):
		return nil
	case source.failure != nil:
		return fmt.Errorf("read the pack: %w", source.failure)
	case errors.Is(err, errTooLarge), errors.Is(err, errFull), ctx.Err() != nil:
		return err
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, packfile.ErrEmptyPackfile):
		return errors.New("read the pack: the connection ended early")
	}
	return refuse(Protocol, "the server sent a broken pack: %v", err)
}

func (p *packStream) readAll(ctx context.Context, visitor packVisitor) error {
	_, count, err := p.scanner.Header()
	if err != nil {
		return err
	}
	for range count {
		header, err := p.scanner.NextObjectHeader()
		if err != nil {
			return err
		}
		// The inflated size in the header counts as read, and objectOverhead for the work of each object, so that a small pack
		// cannot cause hours of computing.
		if err := p.budget.take(objectOverhead); err != nil {
			return err
		}
		if err := p.budget.take(header.Length); err != nil {
			return err
		}
		if err := visitor.visit(ctx, p, header); err != nil {
			return err
		}
	}
	_, err = p.scanner.Checksum()
	return err
}

// skip skips an object.
func (p *packStream) skip(header *packfile.ObjectHeader) error {
	written, _, err := p.scanner.NextObject(io.Discard)
	return complete(header, written, err)
}

// inflate returns an object's content and holds its size in the budget. The scanner never inflates more than the size in
// the header.
func (p *packStream) inflate(ctx context.Context, header *packfile.ObjectHeader) ([]byte, error) {
	if err := p.budget.hold(ctx, header.Length); err != nil {
		return nil, err
	}
	content := bytes.NewBuffer(make([]byte, 0, header.Length))
	written, _, err := p.scanner.NextObject(content)
	return content.Bytes(), complete(header, written, err)
}

func complete(header *packfile.ObjectHeader, written int64, err error) error {
	if err == nil && written != header.Length {
		return fmt.Errorf("an object is %d bytes long instead of %d", written, header.Length)
	}
	return err
}

// patch reads a delta, applies it to the base, and holds the size of the result in the budget. If the result would be
// longer than limit, it is nil.
func (p *packStream) patch(ctx context.Context, header *packfile.ObjectHeader, base []byte, limit int64) ([]byte, error) {
	delta, err := p.inflate(ctx, header)
	if err != nil {
		return nil, err
	}
	defer p.budget.release(header.Length)
	size, err := patchedSize(delta)
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, nil
	}
	if err := p.budget.take(size); err != nil {
		return nil, err
	}
	// The library doubles its buffer when it grows, so up to three times the size is allocated.
	if err := p.budget.hold(ctx, 3*size); err != nil {
		return nil, err
	}
	p.budget.release(2 * size)
	return packfile.PatchDelta(base, delta)
}

// patchedSize returns the size of a delta's result, as the delta states it.
func patchedSize(delta []byte) (int64, error) {
	_, first := binary.Uvarint(delta)
	if first <= 0 {
		return 0, packfile.ErrInvalidDelta
	}
	size, second := binary.Uvarint(delta[first:])
	if second <= 0 || size > math.MaxInt64/4 {
		return 0, packfile.ErrInvalidDelta
	}
	return int64(size), nil
}

// packSource records the error that ended a stream early, which the parser would report as damage.
type packSource struct {
	stream  io.Reader
	left    int64
	failure error
}

// Read reads from the stream up to the limit.
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
