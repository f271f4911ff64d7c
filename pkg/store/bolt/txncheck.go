// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// maxTxnOps is the maximum number of comparisons, or of operations of one branch, in a transaction: etcd's default of
	// --max-txn-ops.
	maxTxnOps = 128

	// maxKeyBytes is the longest key that bbolt accepts with a lease in front of it.
	maxKeyBytes = 32768 - 8
)

var errNestedTxn = status.Error(codes.Unimplemented, "transactions within transactions are not supported")

// checkTxn validates a transaction without reading the store, with etcd's errors.
func checkTxn(r *pb.TxnRequest) error {
	if max(len(r.Compare), len(r.Success), len(r.Failure)) > maxTxnOps {
		return rpctypes.ErrTooManyOps
	}
	for _, c := range r.Compare {
		if len(c.Key) == 0 {
			return rpctypes.ErrEmptyKey
		}
	}
	for _, branch := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range branch {
			if err := checkOp(op); err != nil {
				return err
			}
		}
	}
	if err := checkDistinct(r.Success); err != nil {
		return err
	}
	return checkDistinct(r.Failure)
}

func checkOp(op *pb.RequestOp) error {
	switch o := op.GetRequest().(type) {
	case *pb.RequestOp_RequestRange:
		return checkRange(o.RequestRange)
	case *pb.RequestOp_RequestPut:
		return checkPut(o.RequestPut)
	case *pb.RequestOp_RequestDeleteRange:
		return checkKey(o.RequestDeleteRange.GetKey())
	case *pb.RequestOp_RequestTxn:
		return errNestedTxn
	default:
		return rpctypes.ErrKeyNotFound
	}
}

func checkPut(r *pb.PutRequest) error {
	switch {
	case r.GetIgnoreValue() && len(r.Value) != 0:
		return rpctypes.ErrValueProvided
	case r.GetIgnoreLease() && r.Lease != 0:
		return rpctypes.ErrLeaseProvided
	default:
		return checkKey(r.GetKey())
	}
}

func checkKey(key []byte) error {
	switch {
	case len(key) == 0:
		return rpctypes.ErrEmptyKey
	case len(key) > maxKeyBytes:
		return rpctypes.ErrRequestTooLarge
	default:
		return nil
	}
}

// checkDistinct returns an error for a branch that changes a key twice. It also detects a put that overlaps a delete
// without an upper bound, which etcd does not.
func checkDistinct(branch []*pb.RequestOp) error {
	var deleted []span
	for _, op := range branch {
		if r := op.GetRequestDeleteRange(); r != nil {
			deleted = append(deleted, newSpan(r.Key, r.RangeEnd))
		}
	}
	put := make(map[string]struct{}, len(branch))
	for _, op := range branch {
		r := op.GetRequestPut()
		if r == nil {
			continue
		}
		if _, twice := put[string(r.Key)]; twice {
			return rpctypes.ErrDuplicateKey
		}
		put[string(r.Key)] = struct{}{}
		for _, sp := range deleted {
			if sp.contains(r.Key) {
				return rpctypes.ErrDuplicateKey
			}
		}
	}
	return nil
}

// txnSize returns the memory of a transaction's keys and values.
func txnSize(r *pb.TxnRequest) (size int) {
	for _, c := range r.Compare {
		size += len(c.Key) + len(c.GetValue())
	}
	for _, branch := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range branch {
			put := op.GetRequestPut()
			size += len(put.GetKey()) + len(put.GetValue())
			size += len(op.GetRequestDeleteRange().GetKey()) + len(op.GetRequestRange().GetKey())
		}
	}
	return size
}

// isReadOnly reports whether neither branch of a transaction writes.
func isReadOnly(r *pb.TxnRequest) bool {
	for _, branch := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range branch {
			if op.GetRequestPut() != nil || op.GetRequestDeleteRange() != nil {
				return false
			}
		}
	}
	return true
}
