// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

// maxConflicts is how often a transaction is tried that conflicts with those of others.
const maxConflicts = 10

// errConflicts is returned if rows change all the time.
var errConflicts = errors.New("the rows are being changed by others")

// concurrentInserts is the number of transactions of an Insert at a time. The store commits those together that come together.
const concurrentInserts = 8

// Insert creates rows. A row whose key exists gets the value that merge returns for the stored and the new value; nil leaves it as it is.
// The keys must differ. As many rows at a time as Put writes are written all or none, in any order. Rows that others write or delete
// meanwhile are neither overwritten nor created again. merge may be called concurrently.
func (t *Table) Insert(ctx context.Context, merge func(stored, value []byte) []byte, rows ...Row) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentInserts)
	insert := func(chunk []insertion) {
		if len(chunk) > 0 {
			group.Go(func() error { return t.insert(ctx, merge, chunk) })
		}
	}
	var chunk []insertion
	size := 0
	for i, row := range rows {
		next, err := t.insertion(ctx, row)
		if err != nil {
			return errors.Join(err, group.Wait())
		}
		bytes := 2*len(next.key) + len(next.encrypted)
		if len(chunk) == MaxAtomicRows || size+bytes > MaxAtomicBytes {
			insert(chunk)
			chunk, size = nil, 0
		}
		if chunk == nil {
			chunk = make([]insertion, 0, min(MaxAtomicRows, len(rows)-i))
		}
		chunk, size = append(chunk, next), size+bytes
	}
	insert(chunk)
	return group.Wait()
}

// insertion is a row to create or to merge with a stored one.
type insertion struct {
	Row
	key       string
	encrypted []byte
}

// insertion returns what is written for a row.
func (t *Table) insertion(ctx context.Context, row Row) (insertion, error) {
	if row.Key == "" {
		return insertion{}, errNoKey
	}
	key := t.prefix + row.Key
	encrypted, err := t.store.encrypt(ctx, key, row.Value)
	return insertion{row, key, encrypted}, err
}

// insert writes rows in one transaction, which is tried again if others have written a row meanwhile.
func (t *Table) insert(ctx context.Context, merge func(stored, value []byte) []byte, rows []insertion) error {
	absent := make([]clientv3.Cmp, len(rows))
	puts := make([]clientv3.Op, len(rows))
	for i, row := range rows {
		absent[i] = clientv3.Compare(clientv3.CreateRevision(row.key), "=", 0)
		puts[i] = put(row.key, row.encrypted)
	}
	for range maxConflicts {
		answer, err := t.store.kv.Txn(ctx).If(absent...).Then(puts...).Commit()
		if err != nil {
			return fmt.Errorf("inserting rows of %s: %w", t.prefix, err)
		}
		if answer.Succeeded {
			return nil
		}
		if done, err := t.mergeAll(ctx, merge, rows); err != nil || done {
			return err
		}
	}
	return fmt.Errorf("inserting rows of %s: %w", t.prefix, errConflicts)
}

// mergeAll writes rows of which some exist. done is false if others have written one meanwhile.
func (t *Table) mergeAll(ctx context.Context, merge func(stored, value []byte) []byte, rows []insertion) (done bool, err error) {
	gets := make([]clientv3.Op, len(rows))
	for i, row := range rows {
		gets[i] = clientv3.OpGet(row.key)
	}
	read, err := t.store.kv.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return false, fmt.Errorf("reading rows of %s: %w", t.prefix, err)
	}
	var unchanged []clientv3.Cmp
	var puts []clientv3.Op
	for i, row := range rows {
		found := read.Responses[i].GetResponseRange().Kvs
		if len(found) == 0 {
			unchanged = append(unchanged, clientv3.Compare(clientv3.CreateRevision(row.key), "=", 0))
			puts = append(puts, put(row.key, row.encrypted))
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
		puts = append(puts, put(row.key, encrypted))
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
