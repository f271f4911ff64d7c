// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Range serves etcd's range request at one point in time. It returns rpctypes.ErrCompacted or rpctypes.ErrFutureRev for a
// revision that the store no longer or not yet has.
func (e *Engine) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	if err := usable(ctx, e.stop); err != nil {
		return nil, err
	}
	var response *pb.RangeResponse
	err := e.reader.view(func(s snapshot) (err error) {
		response, err = s.serve(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	arrange(response, r)
	response.Header.ClusterId = e.identity
	return response, nil
}

// usable returns an error if a request need not be started: its context is done, or the engine has stopped.
func usable(ctx context.Context, stop <-chan struct{}) error {
	select {
	case <-stop:
		return ErrClosed
	default:
		return ctx.Err()
	}
}

func checkRange(r *pb.RangeRequest) error {
	if len(r.GetKey()) == 0 {
		return rpctypes.ErrEmptyKey
	}
	_, knownOrder := pb.RangeRequest_SortOrder_name[int32(r.SortOrder)]
	_, knownTarget := pb.RangeRequest_SortTarget_name[int32(r.SortTarget)]
	if !knownOrder || !knownTarget {
		return rpctypes.ErrInvalidSortOption
	}
	return nil
}

// serve reads the keys of a range request. If the request filters or sorts, it returns all keys, and [arrange] does the
// rest outside the transaction.
func (s snapshot) serve(r *pb.RangeRequest) (*pb.RangeResponse, error) {
	q := query{
		span:      newSpan(r.Key, r.RangeEnd),
		revision:  r.Revision,
		limit:     r.Limit,
		keysOnly:  r.KeysOnly && r.SortTarget != pb.RangeRequest_VALUE,
		countOnly: r.CountOnly,
	}
	if needsArranging(r) {
		q.limit = 0
	}
	p, err := s.read(q)
	if err != nil {
		return nil, err
	}
	return &pb.RangeResponse{
		Header: &pb.ResponseHeader{Revision: s.revision},
		Kvs:    p.kvs,
		Count:  p.count,
		More:   p.more,
	}, nil
}

func needsArranging(r *pb.RangeRequest) bool {
	sorted := r.SortTarget != pb.RangeRequest_KEY || r.SortOrder == pb.RangeRequest_DESCEND
	return sorted || r.MinModRevision != 0 || r.MaxModRevision != 0 || r.MinCreateRevision != 0 || r.MaxCreateRevision != 0
}

// arrange filters, sorts and limits the keys that serve returned. The count remains that of all keys, as in etcd.
func arrange(response *pb.RangeResponse, r *pb.RangeRequest) {
	if !needsArranging(r) {
		return
	}
	kvs := slices.DeleteFunc(response.Kvs, func(kv *mvccpb.KeyValue) bool { return !inRevisions(kv, r) })
	slices.SortStableFunc(kvs, func(a, b *mvccpb.KeyValue) int {
		if r.SortOrder == pb.RangeRequest_DESCEND {
			a, b = b, a
		}
		return compareBy(r.SortTarget, a, b)
	})
	if r.Limit > 0 && int64(len(kvs)) > r.Limit {
		kvs, response.More = kvs[:r.Limit], true
	}
	if r.KeysOnly {
		for _, kv := range kvs {
			kv.Value = nil
		}
	}
	response.Kvs = kvs
}

func inRevisions(kv *mvccpb.KeyValue, r *pb.RangeRequest) bool {
	within := func(n, low, high int64) bool { return (low == 0 || n >= low) && (high == 0 || n <= high) }
	return within(kv.ModRevision, r.MinModRevision, r.MaxModRevision) &&
		within(kv.CreateRevision, r.MinCreateRevision, r.MaxCreateRevision)
}

func compareBy(target pb.RangeRequest_SortTarget, a, b *mvccpb.KeyValue) int {
	switch target {
	case pb.RangeRequest_VERSION:
		return cmp.Compare(a.Version, b.Version)
	case pb.RangeRequest_CREATE:
		return cmp.Compare(a.CreateRevision, b.CreateRevision)
	case pb.RangeRequest_MOD:
		return cmp.Compare(a.ModRevision, b.ModRevision)
	case pb.RangeRequest_VALUE:
		return bytes.Compare(a.Value, b.Value)
	default:
		return bytes.Compare(a.Key, b.Key)
	}
}
