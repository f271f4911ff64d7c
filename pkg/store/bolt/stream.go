// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// What one read transaction of a streamed range copies out.
const (
	chunkKeys  = 1000
	chunkBytes = 4 << 20
)

// rangeStream serves a range request in chunks. Every chunk is its own short read transaction; all of them read the
// revision of the first one.
type rangeStream struct {
	localStream
	engine  *Engine
	request *pb.RangeRequest

	span     span
	revision int64
	left     int64 // keys still wanted, 0 is all
	count    int64 // keys of the whole range
	started  bool
	finished bool
}

// newRangeStream starts a streamed range. Sorting and revision filters need all keys at once and are refused, as in etcd.
func newRangeStream(ctx context.Context, e *Engine, r *pb.RangeRequest) (*rangeStream, error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	if needsArranging(r) {
		return nil, status.Error(codes.Unimplemented, "streamed ranges are neither sorted nor filtered by revision")
	}
	return &rangeStream{
		localStream: localStream{ctx: ctx},
		engine:      e, request: r,
		span: newSpan(r.Key, r.RangeEnd), revision: r.Revision, left: r.Limit,
	}, nil
}

// Recv reads the next chunk. The last one has the header, the count and whether the limit omitted keys; after it, Recv
// returns io.EOF.
func (s *rangeStream) Recv() (*pb.RangeStreamResponse, error) {
	if s.finished {
		return nil, io.EOF
	}
	if err := usable(s.ctx, s.engine.stop); err != nil {
		return nil, err
	}
	var p page
	var limit int64
	err := s.engine.reader.view(func(snap snapshot) (err error) {
		if !s.started && s.revision == 0 {
			s.revision = snap.revision
		}
		limit = s.chunkLimit()
		p, err = snap.read(query{
			span: s.span, revision: s.revision, limit: limit, bytes: chunkBytes,
			keysOnly: s.request.KeysOnly, countOnly: s.request.CountOnly,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &pb.RangeStreamResponse{RangeResponse: s.advance(p)}, nil
}

func (s *rangeStream) chunkLimit() int64 {
	if s.left > 0 {
		return min(s.left, chunkKeys)
	}
	return chunkKeys
}

// advance moves the stream past a chunk and returns its response.
func (s *rangeStream) advance(p page) *pb.RangeResponse {
	if !s.started {
		s.count, s.started = p.count, true
	}
	limited := s.left > 0 && s.left <= int64(len(p.kvs))
	response := &pb.RangeResponse{Kvs: p.kvs}
	if !p.more || limited {
		s.finished = true
		response.Header, response.Count, response.More = s.engine.header(s.revision), s.count, p.more
		return response
	}
	last := p.kvs[len(p.kvs)-1].Key
	s.span.start = append(append([]byte(nil), last...), 0)
	if s.left > 0 {
		s.left -= int64(len(p.kvs))
	}
	return response
}

// localStream implements the part of a gRPC stream that has no meaning within a process.
type localStream struct {
	ctx context.Context //nolint:containedctx // A stream has a context, as grpc.ClientStream says.
}

func (s localStream) Context() context.Context     { return s.ctx }
func (s localStream) Header() (metadata.MD, error) { return nil, nil }
func (s localStream) Trailer() metadata.MD         { return nil }
func (s localStream) CloseSend() error             { return nil }
func (s localStream) SendMsg(any) error            { return errUnsupported }
func (s localStream) RecvMsg(any) error            { return errUnsupported }
