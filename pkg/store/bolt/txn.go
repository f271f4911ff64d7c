// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Txn runs etcd's transaction atomically: the success branch if all comparisons are true, else the failure branch. Its
// changes share one new revision, and are durable when Txn returns. Nested transactions are refused. The engine takes
// ownership of the request's keys and values: the caller must not change them afterwards.
func (e *Engine) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := checkTxn(r); err != nil {
		return nil, err
	}
	run := e.writeTxn
	if isReadOnly(r) {
		run = e.readTxn
	}
	response, err := run(ctx, r)
	if err != nil {
		return nil, err
	}
	response.Header.ClusterId = e.identity
	arrangeRanges(response, r)
	return response, nil
}

// writeTxn runs a transaction in the committer. After an error, the change may still be in its queue, and must not be
// read.
func (e *Engine) writeTxn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	change := &txn{request: r}
	if err := e.committer.commit(ctx, change, txnSize(r)); err != nil {
		return nil, err
	}
	return change.response, nil
}

// Put sets one key.
func (e *Engine) Put(ctx context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	op := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}}
	response, err := e.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{op}})
	if err != nil {
		return nil, err
	}
	put := response.Responses[0].GetResponsePut()
	put.Header = response.Header
	return put, nil
}

// DeleteRange removes the keys of a range.
func (e *Engine) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	op := &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: r}}
	response, err := e.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{op}})
	if err != nil {
		return nil, err
	}
	deleted := response.Responses[0].GetResponseDeleteRange()
	deleted.Header = response.Header
	return deleted, nil
}

// readTxn runs a read-only transaction, bypassing the committer.
func (e *Engine) readTxn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := usable(ctx, e.stop); err != nil {
		return nil, err
	}
	var response *pb.TxnResponse
	err := e.reader.view(func(s snapshot) error {
		succeeded, err := s.holds(r.Compare)
		if err != nil {
			return err
		}
		response = &pb.TxnResponse{Succeeded: succeeded, Header: &pb.ResponseHeader{Revision: s.revision}}
		for _, op := range branchOf(r, succeeded) {
			served, err := s.serve(op.GetRequestRange())
			if err != nil {
				return err
			}
			response.Responses = append(response.Responses, rangeOp(served))
		}
		return nil
	})
	return response, err
}

// arrangeRanges arranges the ranges of a transaction outside of it.
func arrangeRanges(response *pb.TxnResponse, r *pb.TxnRequest) {
	for i, op := range branchOf(r, response.Succeeded) {
		if get := op.GetRequestRange(); get != nil {
			arrange(response.Responses[i].GetResponseRange(), get)
		}
	}
}

func branchOf(r *pb.TxnRequest, succeeded bool) []*pb.RequestOp {
	if succeeded {
		return r.Success
	}
	return r.Failure
}

// txn is a transaction in the committer.
type txn struct {
	request  *pb.TxnRequest
	branch   []*pb.RequestOp
	response *pb.TxnResponse
}

// check selects the branch and returns an error if one of its operations cannot be done. Comparisons and checks see the
// store before the transaction.
func (t *txn) check(w *writer) error {
	succeeded, err := w.holds(t.request.Compare)
	if err != nil {
		return err
	}
	t.branch = branchOf(t.request, succeeded)
	t.response = &pb.TxnResponse{Succeeded: succeeded, Responses: make([]*pb.ResponseOp, 0, len(t.branch))}
	for _, op := range t.branch {
		if err := w.checkOperation(op); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) checkOperation(op *pb.RequestOp) error {
	if r := op.GetRequestRange(); r != nil {
		return w.checkRevision(r.Revision)
	}
	put := op.GetRequestPut()
	if put == nil {
		return nil
	}
	if put.Lease != 0 && w.leases.Get(putInt64(put.Lease)) == nil {
		return rpctypes.ErrLeaseNotFound
	}
	if (put.IgnoreValue || put.IgnoreLease) && w.keys.Get(put.Key) == nil {
		return rpctypes.ErrKeyNotFound
	}
	return nil
}

// write performs the operations of the branch in order; reads see the writes before them.
func (t *txn) write(w *writer) error {
	for _, op := range t.branch {
		response, err := w.operate(op)
		if err != nil {
			return err
		}
		t.response.Responses = append(t.response.Responses, response)
	}
	t.response.Header = &pb.ResponseHeader{Revision: w.current()}
	return nil
}

func (w *writer) operate(op *pb.RequestOp) (*pb.ResponseOp, error) {
	switch o := op.Request.(type) {
	case *pb.RequestOp_RequestPut:
		return w.operatePut(o.RequestPut)
	case *pb.RequestOp_RequestDeleteRange:
		return w.operateDelete(o.RequestDeleteRange)
	default:
		served, err := w.now().serve(op.GetRequestRange())
		return rangeOp(served), err
	}
}

func (w *writer) operatePut(r *pb.PutRequest) (*pb.ResponseOp, error) {
	previous := w.lookup(r.Key)
	value, lease := r.Value, r.Lease
	if r.IgnoreValue {
		value = previous.Value
	}
	if r.IgnoreLease {
		lease = previous.Lease
	}
	if err := w.put(r.Key, value, lease, previous); err != nil {
		return nil, err
	}
	response := &pb.PutResponse{Header: &pb.ResponseHeader{Revision: w.current()}}
	if r.PrevKv {
		response.PrevKv = copyOf(previous)
	}
	return &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: response}}, nil
}

func (w *writer) operateDelete(r *pb.DeleteRangeRequest) (*pb.ResponseOp, error) {
	p, err := w.read(query{span: newSpan(r.Key, r.RangeEnd)})
	if err != nil {
		return nil, err
	}
	response := &pb.DeleteRangeResponse{Deleted: p.count}
	for _, previous := range p.kvs {
		if err := w.remove(previous); err != nil {
			return nil, err
		}
		if r.PrevKv {
			response.PrevKvs = append(response.PrevKvs, copyOf(previous))
		}
	}
	response.Header = &pb.ResponseHeader{Revision: w.current()}
	return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: response}}, nil
}

func rangeOp(r *pb.RangeResponse) *pb.ResponseOp {
	return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: r}}
}

// copyOf returns a copy of a key, whose bytes are shared with events.
func copyOf(kv *mvccpb.KeyValue) *mvccpb.KeyValue {
	if kv == nil {
		return nil
	}
	return &mvccpb.KeyValue{
		Key: kv.Key, Value: kv.Value, Lease: kv.Lease, Version: kv.Version,
		CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision,
	}
}
