// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolttest

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Write is a transaction or deletion that a test intercepts.
type Write struct {
	// Key is the first key that is written, and Bytes the size of all written keys and values.
	Key   string
	Bytes int
	// Put is set if a transaction first puts a key, and not if it first deletes one.
	Put bool
	// Deletion is set for a deletion outside transactions.
	Deletion bool
	// Commit makes the write.
	Commit func() error
}

// WithWrites returns a KV that calls intercept for each transaction and deletion of kv. What intercept returns is the error of the write;
// nothing is written unless it calls Commit. Tests of crashes count writes with it, tests of full disks fail them.
func WithWrites(kv clientv3.KV, intercept func(ctx context.Context, write Write) error) clientv3.KV {
	return &interceptedKV{KV: kv, intercept: intercept}
}

type interceptedKV struct {
	clientv3.KV
	intercept func(ctx context.Context, write Write) error
}

func (kv *interceptedKV) Delete(
	ctx context.Context, key string, options ...clientv3.OpOption,
) (response *clientv3.DeleteResponse, err error) {
	err = kv.intercept(ctx, Write{Key: key, Bytes: len(key), Deletion: true, Commit: func() (err error) {
		response, err = kv.KV.Delete(ctx, key, options...)
		return err
	}})
	if err != nil {
		return nil, err
	}
	return response, nil
}

func (kv *interceptedKV) Txn(ctx context.Context) clientv3.Txn {
	return &interceptedTxn{Txn: kv.KV.Txn(ctx), intercept: func(write Write) error { return kv.intercept(ctx, write) }}
}

type interceptedTxn struct {
	clientv3.Txn
	intercept func(write Write) error
	write     Write
}

func (txn *interceptedTxn) If(compares ...clientv3.Cmp) clientv3.Txn {
	txn.Txn = txn.Txn.If(compares...)
	return txn
}

func (txn *interceptedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	txn.Txn = txn.Txn.Then(ops...)
	for _, op := range ops {
		if txn.write.Key == "" {
			txn.write.Key, txn.write.Put = string(op.KeyBytes()), op.IsPut()
		}
		txn.write.Bytes += len(op.KeyBytes()) + len(op.ValueBytes())
	}
	return txn
}

func (txn *interceptedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	txn.Txn = txn.Txn.Else(ops...)
	return txn
}

func (txn *interceptedTxn) Commit() (response *clientv3.TxnResponse, err error) {
	write := txn.write
	write.Commit = func() (err error) {
		response, err = txn.Txn.Commit()
		return err
	}
	if err := txn.intercept(write); err != nil {
		return nil, err
	}
	return response, nil
}
