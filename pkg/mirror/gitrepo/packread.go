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

// objectOverhead is more than an object takes in memory beside its content, in bytes: its places in maps and the rounding
// of allocations.
const objectOverhead = 512

// errFound ends the reading of a pack of which nothing more is needed.
var errFound = errors.New("everything has been found")

// packVisitor takes the objects of a pack in their order. It reads each one's content or skips it.
type packVisitor interface {
	visit(ctx context.Context, pack *packStream, header *packfile.ObjectHeader) error
}

// packStream is a pack that is read from a server, once and forwards.
type packStream struct {
	scanner *packfile.Scanner
	budget  *budget
}

// keptObject is an object that later ones may be deltas against.
type keptObject struct {
	kind    plumbing.ObjectType
	content []byte
}

// readPack reads a pack from a stream, of which at most limit bytes are taken, and has the visitor see each object. Objects
// need not be checked for damage: callers find them by hashes that are computed from what was read.
func readPack(ctx context.Context, stream io.Reader, limit int64, budget *budget, visitor packVisitor) error {
	source := &packSource{stream: stream, left: limit}
	err := (&packStream{scanner: packfile.NewScanner(source), budget: budget}).readAll(ctx, visitor)
	switch {
	case err == nil, errors.Is(err, errFound):
		return nil
	case source.failure != nil:
		return fmt.Errorf("read the pack: %w", source.failure)
	case errors.Is(err, errTooLarge), ctx.Err() != nil:
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
		// What an object claims to inflate to counts as read, and objectOverhead for the work that the smallest makes, so that
		// a little of a pack cannot stand for hours of computing.
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

// skip reads over an object.
func (p *packStream) skip(header *packfile.ObjectHeader) error {
	written, _, err := p.scanner.NextObject(io.Discard)
	return complete(header, written, err)
}

// inflate returns an object's content, for which the budget holds its size from then on. The scanner never inflates more
// than the header claims.
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

// patch reads a delta and returns what it makes of the base, for which the budget holds its size from then on. A delta whose
// result would be longer than limit is read over; then the content is nil.
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
	// The library grows its buffer by doubling it: three times the size exist for a moment.
	if err := p.budget.hold(ctx, 3*size); err != nil {
		return nil, err
	}
	p.budget.release(2 * size)
	return packfile.PatchDelta(base, delta)
}

// patchedSize is the size that a delta claims its result to have.
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

// packSource remembers what ended a stream early: the pack's parser would call it damage.
type packSource struct {
	stream  io.Reader
	left    int64
	failure error
}

// Read reads from the stream while there is something left of the limit.
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
