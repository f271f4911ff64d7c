// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxConflicts is how often a transaction is tried that conflicts with those of others.
const maxConflicts = 10

// errConflicts is returned if rows change all the time.
var errConflicts = errors.New("the rows are being changed by others")

// Insert creates rows. A row whose key exists gets the value that merge returns for the stored and the new value; nil leaves it as it is.
// The keys must differ. As many rows at a time as Put writes are written all or none. Rows that others write or delete meanwhile are
// neither overwritten nor created again.
func (t *Table) Insert(ctx context.Context, merge func(stored, value []byte) []byte, rows ...Row) error {
	var chunk []insertion
	size := 0
	for _, row := range rows {
		if row.Key == "" {
			return errNoKey
		}
		next := insertion{Row: row, key: t.prefix + row.Key}
		var err error
		if next.encrypted, err = t.store.encrypt(ctx, next.key, row.Value); err != nil {
			return err
		}
		bytes := 2*len(next.key) + len(next.encrypted)
		if len(chunk) == MaxAtomicRows || size+bytes > MaxAtomicBytes {
			if err := t.insert(ctx, merge, chunk); err != nil {
				return err
			}
			chunk, size = nil, 0
		}
		chunk, size = append(chunk, next), size+bytes
	}
	return t.insert(ctx, merge, chunk)
}

// insertion is a row to create or to merge with a stored one.
type insertion struct {
	Row
	key       string
	encrypted []byte
}

// insert writes rows in one transaction, which is tried again if others have written a row meanwhile.
func (t *Table) insert(ctx context.Context, merge func(stored, value []byte) []byte, rows []insertion) error {
	if len(rows) == 0 {
		return nil
	}
	var absent []clientv3.Cmp
	var puts, gets []clientv3.Op
	for _, row := range rows {
		absent = append(absent, clientv3.Compare(clientv3.CreateRevision(row.key), "=", 0))
		puts, gets = append(puts, clientv3.OpPut(row.key, string(row.encrypted))), append(gets, clientv3.OpGet(row.key))
	}
	for range maxConflicts {
		answer, err := t.store.kv.Txn(ctx).If(absent...).Then(puts...).Else(gets...).Commit()
		if err != nil {
			return fmt.Errorf("inserting rows of %s: %w", t.prefix, err)
		}
		if answer.Succeeded {
			return nil
		}
		if done, err := t.mergeAll(ctx, merge, rows, answer); err != nil || done {
			return err
		}
	}
	return fmt.Errorf("inserting rows of %s: %w", t.prefix, errConflicts)
}

// mergeAll writes rows of which some exist, as they were read. done is false if others have written one meanwhile.
func (t *Table) mergeAll(
	ctx context.Context, merge func(stored, value []byte) []byte, rows []insertion, read *clientv3.TxnResponse,
) (done bool, err error) {
	var unchanged []clientv3.Cmp
	var puts []clientv3.Op
	for i, row := range rows {
		found := read.Responses[i].GetResponseRange().Kvs
		if len(found) == 0 {
			unchanged = append(unchanged, clientv3.Compare(clientv3.CreateRevision(row.key), "=", 0))
			puts = append(puts, clientv3.OpPut(row.key, string(row.encrypted)))
			continue
		}
		stored, err := t.store.decrypt(ctx, row.key, found[0].Value)
		if err != nil {
			return false, err
		}
		merged := merge(stored, row.Value)
		if merged == nil || bytes.Equal(merged, stored) {
			continue
		}
		encrypted, err := t.store.encrypt(ctx, row.key, merged)
		if err != nil {
			return false, err
		}
		unchanged = append(unchanged, clientv3.Compare(clientv3.ModRevision(row.key), "=", found[0].ModRevision))
		puts = append(puts, clientv3.OpPut(row.key, string(encrypted)))
	}
	if len(puts) == 0 {
		return true, nil
	}
	answer, err := t.store.kv.Txn(ctx).If(unchanged...).Then(puts...).Commit()
	if err != nil {
		return false, fmt.Errorf("merging rows of %s: %w", t.prefix, err)
	}
	return answer.Succeeded, nil
}
