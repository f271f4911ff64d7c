// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"cmp"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// holds reports whether all comparisons of a transaction are true.
func (s snapshot) holds(compares []*pb.Compare) (bool, error) {
	for _, c := range compares {
		if ok, err := s.compare(c); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// compare evaluates one comparison on every key of its range. A range without
// keys compares as a key with all numbers zero; its value equals nothing.
func (s snapshot) compare(c *pb.Compare) (bool, error) {
	p, err := s.read(query{span: newSpan(c.Key, c.RangeEnd), keysOnly: c.Target != pb.Compare_VALUE})
	if err != nil {
		return false, err
	}
	if len(p.kvs) == 0 {
		return c.Target != pb.Compare_VALUE && compareKey(c, &mvccpb.KeyValue{}), nil
	}
	for _, kv := range p.kvs {
		if !compareKey(c, kv) {
			return false, nil
		}
	}
	return true, nil
}

func compareKey(c *pb.Compare, kv *mvccpb.KeyValue) bool {
	var order int
	switch c.Target {
	case pb.Compare_VALUE:
		order = bytes.Compare(kv.Value, c.GetValue())
	case pb.Compare_CREATE:
		order = cmp.Compare(kv.CreateRevision, c.GetCreateRevision())
	case pb.Compare_MOD:
		order = cmp.Compare(kv.ModRevision, c.GetModRevision())
	case pb.Compare_VERSION:
		order = cmp.Compare(kv.Version, c.GetVersion())
	case pb.Compare_LEASE:
		order = cmp.Compare(kv.Lease, c.GetLease())
	}
	switch c.Result {
	case pb.Compare_EQUAL:
		return order == 0
	case pb.Compare_NOT_EQUAL:
		return order != 0
	case pb.Compare_GREATER:
		return order > 0
	case pb.Compare_LESS:
		return order < 0
	default:
		return true
	}
}
