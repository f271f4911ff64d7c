// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolttest

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// WithWrites returns a KV that calls write before each transaction and deletion of kv, with the first key of it. If write returns an
// error, that is the result, and nothing is written. Tests of crashes count writes with it, tests of full disks fail them.
func WithWrites(kv clientv3.KV, write func(ctx context.Context, key string) error) clientv3.KV {
	return &interceptedKV{KV: kv, write: write}
}

type interceptedKV struct {
	clientv3.KV
	write func(ctx context.Context, key string) error
}

func (kv *interceptedKV) Delete(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	if err := kv.write(ctx, key); err != nil {
		return nil, err
	}
	return kv.KV.Delete(ctx, key, options...)
}

func (kv *interceptedKV) Txn(ctx context.Context) clientv3.Txn {
	return &interceptedTxn{Txn: kv.KV.Txn(ctx), write: func(key string) error { return kv.write(ctx, key) }}
}

type interceptedTxn struct {
	clientv3.Txn
	write func(key string) error
	key   string
}

func (txn *interceptedTxn) If(compares ...clientv3.Cmp) clientv3.Txn {
	txn.Txn = txn.Txn.If(compares...)
	return txn
}

func (txn *interceptedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	txn.Txn = txn.Txn.Then(ops...)
	if txn.key == "" && len(ops) > 0 {
		txn.key = string(ops[0].KeyBytes())
	}
	return txn
}

func (txn *interceptedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	txn.Txn = txn.Txn.Else(ops...)
	return txn
}

func (txn *interceptedTxn) Commit() (*clientv3.TxnResponse, error) {
	if err := txn.write(txn.key); err != nil {
		return nil, err
	}
	return txn.Txn.Commit()
}
