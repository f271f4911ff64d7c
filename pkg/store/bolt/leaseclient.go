// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// leaseClient implements the lease service of etcd's client with the engine.
type leaseClient struct{ engine *Engine }

var _ pb.LeaseClient = leaseClient{}

func (c leaseClient) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest, _ ...grpc.CallOption) (*pb.LeaseGrantResponse, error) {
	return c.engine.Grant(ctx, r)
}

func (c leaseClient) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest, _ ...grpc.CallOption) (*pb.LeaseRevokeResponse, error) {
	return c.engine.Revoke(ctx, r)
}

func (c leaseClient) LeaseTimeToLive(
	ctx context.Context, r *pb.LeaseTimeToLiveRequest, _ ...grpc.CallOption,
) (*pb.LeaseTimeToLiveResponse, error) {
	return c.engine.TimeToLive(ctx, r)
}

func (c leaseClient) LeaseLeases(ctx context.Context, _ *pb.LeaseLeasesRequest, _ ...grpc.CallOption) (*pb.LeaseLeasesResponse, error) {
	return c.engine.Leases(ctx)
}

func (c leaseClient) LeaseKeepAlive(
	ctx context.Context, _ ...grpc.CallOption,
) (grpc.BidiStreamingClient[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse], error) {
	return &keepAliveStream{
		localStream: localStream{ctx: ctx},
		engine:      c.engine,
		requests:    make(chan int64, keepAliveQueue),
	}, nil
}

// keepAliveQueue is the number of renewals that a client may send before it receives responses.
const keepAliveQueue = 16

// keepAliveStream renews leases: every request gets one response.
type keepAliveStream struct {
	localStream
	engine   *Engine
	requests chan int64
}

func (s *keepAliveStream) Send(r *pb.LeaseKeepAliveRequest) error {
	select {
	case s.requests <- r.ID:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// Recv renews the next lease. A lease that does not exist has the time to live 0, as in etcd.
func (s *keepAliveStream) Recv() (*pb.LeaseKeepAliveResponse, error) {
	select {
	case id := <-s.requests:
		response, err := s.engine.KeepAlive(s.ctx, id)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return &pb.LeaseKeepAliveResponse{Header: s.engine.header(s.engine.Revision()), ID: id}, nil
		}
		return response, err
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	case <-s.engine.stop:
		return nil, ErrClosed
	}
}
