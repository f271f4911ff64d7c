// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxConflicts is how often a transaction is tried that conflicts with those of others.
const maxConflicts = 10

// errConflicts is returned if rows change all the time.
var errConflicts = errors.New("the rows are being changed by others")

// Beside are writes to another table of the same backend that Insert makes.
type Beside struct {
	Table *Table
	// Rows are written before the inserted rows or with them, Deleted are deleted after them or with them.
	Rows    []Row
	Deleted []string
}

// Insert creates rows. A row whose key exists gets the value that merge returns for the stored and the new value; nil leaves it as it is.
// The keys must differ. Rows are written in transactions of up to [MaxAtomicRows] rows and [MaxAtomicBytes], each all or none, with the
// writes beside them that fit in. Rows that others write or delete meanwhile are neither overwritten nor created again.
func (t *Table) Insert(ctx context.Context, merge func(stored, value []byte) []byte, beside Beside, rows ...Row) error {
	i := inserter{table: t, merge: merge}
	for _, row := range beside.Rows {
		key := beside.Table.prefix + row.Key
		encrypted, err := beside.Table.store.encrypt(ctx, key, row.Value)
		if err != nil {
			return err
		}
		if err := i.add(ctx, len(key)+len(encrypted)); err != nil {
			return err
		}
		i.beside = append(i.beside, clientv3.OpPut(key, string(encrypted)))
	}
	for _, row := range rows {
		if row.Key == "" {
			return errNoKey
		}
		next := insertion{Row: row, key: t.prefix + row.Key}
		var err error
		if next.encrypted, err = t.store.encrypt(ctx, next.key, row.Value); err != nil {
			return err
		}
		if err := i.add(ctx, 2*len(next.key)+len(next.encrypted)); err != nil {
			return err
		}
		i.rows = append(i.rows, next)
	}
	for _, key := range beside.Deleted {
		if err := i.add(ctx, len(beside.Table.prefix)+len(key)); err != nil {
			return err
		}
		i.beside = append(i.beside, clientv3.OpDelete(beside.Table.prefix+key))
	}
	return i.flush(ctx)
}

// inserter collects writes into as few transactions as the limits allow.
type inserter struct {
	table *Table
	merge func(stored, value []byte) []byte

	rows   []insertion
	beside []clientv3.Op
	bytes  int
}

// insertion is a row to create or to merge with a stored one.
type insertion struct {
	Row
	key       string
	encrypted []byte
}

// add makes room for a write of a size: if it does not fit, the collected ones are made first.
func (i *inserter) add(ctx context.Context, size int) error {
	if len(i.rows)+len(i.beside) == MaxAtomicRows || i.bytes+size > MaxAtomicBytes {
		if err := i.flush(ctx); err != nil {
			return err
		}
	}
	i.bytes += size
	return nil
}

// flush makes the collected writes in one transaction, which is tried again if others have written a row meanwhile.
func (i *inserter) flush(ctx context.Context) error {
	defer func() { i.rows, i.beside, i.bytes = nil, nil, 0 }()
	if len(i.rows)+len(i.beside) == 0 {
		return nil
	}
	var absent []clientv3.Cmp
	var puts, gets []clientv3.Op
	for _, row := range i.rows {
		absent = append(absent, clientv3.Compare(clientv3.CreateRevision(row.key), "=", 0))
		puts, gets = append(puts, clientv3.OpPut(row.key, string(row.encrypted))), append(gets, clientv3.OpGet(row.key))
	}
	for range maxConflicts {
		answer, err := i.table.store.kv.Txn(ctx).If(absent...).Then(append(puts, i.beside...)...).Else(gets...).Commit()
		if err != nil {
			return fmt.Errorf("inserting rows of %s: %w", i.table.prefix, err)
		}
		if answer.Succeeded {
			return nil
		}
		if done, err := i.mergeAll(ctx, answer); err != nil || done {
			return err
		}
	}
	return fmt.Errorf("inserting rows of %s: %w", i.table.prefix, errConflicts)
}

// mergeAll makes the writes if some rows exist, as they were read. done is false if others have written one meanwhile.
func (i *inserter) mergeAll(ctx context.Context, read *clientv3.TxnResponse) (done bool, err error) {
	t := i.table
	var unchanged []clientv3.Cmp
	puts := slices.Clone(i.beside)
	for at, row := range i.rows {
		found := read.Responses[at].GetResponseRange().Kvs
		if len(found) == 0 {
			unchanged = append(unchanged, clientv3.Compare(clientv3.CreateRevision(row.key), "=", 0))
			puts = append(puts, clientv3.OpPut(row.key, string(row.encrypted)))
			continue
		}
		stored, err := t.store.decrypt(ctx, row.key, found[0].Value)
		if err != nil {
			return false, err
		}
		merged := i.merge(stored, row.Value)
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
