// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// MaxAtomicRows is how many rows are written at once: etcd's default of
	// --max-txn-ops.
	MaxAtomicRows = 128

	// MaxAtomicBytes bounds the keys and values that are written at once. It leaves
	// etcd's default request limit of 1.5 MiB room for what comes with them.
	MaxAtomicBytes = 1 << 20

	// scanRows is how many rows a scan reads at once, keysRows how many keys.
	scanRows = 256
	keysRows = 4096
)

// errNoKey is returned for a row without a key, which would be the table itself.
var errNoKey = errors.New("row has no key")

// Row is one row of a table.
type Row struct {
	// Key orders the rows of a table by its bytes. It is not empty.
	Key   string
	Value []byte
}

// Table is a set of rows, ordered by their keys.
type Table struct {
	store *Store
	name  string
	// prefix precedes the keys of the rows in the store. It ends with a slash.
	prefix string
}

// Put creates or replaces rows. Of several rows with one key, the last is written. Up to
// [MaxAtomicRows] rows of up to [MaxAtomicBytes] are written all or none; more are
// written so many at a time, in order. A row beyond etcd's request limit fails
// with rpctypes.ErrRequestTooLarge.
func (t *Table) Put(ctx context.Context, rows ...Row) error {
	b := batch{kv: t.store.kv}
	for _, row := range lastOfEach(rows) {
		if row.Key == "" {
			return errNoKey
		}
		key := t.prefix + row.Key
		encrypted, err := t.store.encrypt(ctx, key, row.Value)
		if err != nil {
			return err
		}
		op := put(key, encrypted)
		if err := b.add(ctx, op, len(key)+len(encrypted)); err != nil {
			return fmt.Errorf("putting rows of %s: %w", t.prefix, err)
		}
	}
	if err := b.flush(ctx); err != nil {
		return fmt.Errorf("putting rows of %s: %w", t.prefix, err)
	}
	return nil
}

// Create writes a row unless one with its key exists, and returns the stored value. Concurrent calls for one key all return
// the same value.
func (t *Table) Create(ctx context.Context, row Row) ([]byte, error) {
	if row.Key == "" {
		return nil, errNoKey
	}
	key := t.prefix + row.Key
	encrypted, err := t.store.encrypt(ctx, key, row.Value)
	if err != nil {
		return nil, err
	}
	answer, err := t.store.kv.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(put(key, encrypted)).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return nil, fmt.Errorf("creating row %s: %w", key, err)
	}
	if answer.Succeeded {
		return row.Value, nil
	}
	return t.store.decrypt(ctx, key, answer.Responses[0].GetResponseRange().Kvs[0].Value)
}

// Delete removes rows; those that do not exist are no error. As many at a time are
// removed all or none as Put writes.
func (t *Table) Delete(ctx context.Context, keys ...string) error {
	b := batch{kv: t.store.kv}
	for _, key := range keys {
		if key == "" {
			return errNoKey
		}
		op := clientv3.OpDelete(t.prefix + key)
		if err := b.add(ctx, op, len(t.prefix)+len(key)); err != nil {
			return fmt.Errorf("deleting rows of %s: %w", t.prefix, err)
		}
	}
	if err := b.flush(ctx); err != nil {
		return fmt.Errorf("deleting rows of %s: %w", t.prefix, err)
	}
	return nil
}

// DeleteRange removes the rows from one key to before another, all or none. It writes nothing if there are none.
func (t *Table) DeleteRange(ctx context.Context, from, to string) error {
	if from == "" || to == "" {
		return errNoKey
	}
	end := clientv3.WithRange(t.prefix + to)
	there, err := t.store.kv.Get(ctx, t.prefix+from, end, clientv3.WithCountOnly())
	if err == nil && there.Count > 0 {
		_, err = t.store.kv.Delete(ctx, t.prefix+from, end)
	}
	if err != nil {
		return fmt.Errorf("deleting rows of %s from %s to %s: %w", t.prefix, from, to, err)
	}
	return nil
}

// Get returns the value of a row, and false if there is none.
func (t *Table) Get(ctx context.Context, key string) ([]byte, bool, error) {
	if key == "" {
		return nil, false, errNoKey
	}
	response, err := t.store.kv.Get(ctx, t.prefix+key)
	if err != nil {
		return nil, false, fmt.Errorf("getting row %s%s: %w", t.prefix, key, err)
	}
	if len(response.Kvs) == 0 {
		return nil, false, nil
	}
	plain, err := t.store.decrypt(ctx, t.prefix+key, response.Kvs[0].Value)
	if err != nil {
		return nil, false, err
	}
	return plain, true, nil
}

// Count returns the number of rows whose key has the prefix. The empty prefix counts all rows.
func (t *Table) Count(ctx context.Context, prefix string) (int64, error) {
	response, err := t.store.kv.Get(ctx, t.prefix+prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("counting rows of %s%s: %w", t.prefix, prefix, err)
	}
	return response.Count, nil
}

// FullKey returns the key of a row in the store, for error messages and logs.
func (t *Table) FullKey(key string) string { return t.prefix + key }

// Keys visits the keys with the prefix, in order, without reading the values. See KeysFrom.
func (t *Table) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return t.KeysFrom(ctx, prefix, "")
}

// KeysFrom visits the keys that have the prefix and are not less than from, in order, without reading the values. See ScanFrom.
func (t *Table) KeysFrom(ctx context.Context, prefix, from string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for page, err := range t.pages(ctx, prefix, from, clientv3.WithKeysOnly(), clientv3.WithLimit(keysRows)) {
			if err != nil {
				yield("", err)
				return
			}
			for _, kv := range page.Kvs {
				if !yield(string(kv.Key[len(t.prefix):]), nil) {
					return
				}
			}
		}
	}
}

// Span is the keys from one to before another. An empty To is the end of the table.
type Span struct {
	From, To string
	// Limit is the maximum number of keys that are read, at least 1.
	Limit int
}

// FirstKeys returns the first keys of each span, in order, without reading the values. It reads up to [MaxAtomicRows] spans in one
// transaction. Spans beyond that are read at later revisions.
func (t *Table) FirstKeys(ctx context.Context, spans ...Span) ([][]string, error) {
	found := make([][]string, 0, len(spans))
	for chunk := range slices.Chunk(spans, MaxAtomicRows) {
		ops := make([]clientv3.Op, 0, len(chunk))
		for _, span := range chunk {
			end := t.prefix + span.To
			if span.To == "" {
				end = clientv3.GetPrefixRangeEnd(t.prefix)
			}
			ops = append(ops, clientv3.OpGet(t.prefix+span.From, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(int64(span.Limit))))
		}
		read, err := t.store.kv.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return nil, fmt.Errorf("reading keys of %s: %w", t.prefix, err)
		}
		for _, response := range read.Responses {
			var keys []string
			for _, kv := range response.GetResponseRange().Kvs {
				keys = append(keys, string(kv.Key[len(t.prefix):]))
			}
			found = append(found, keys)
		}
	}
	return found, nil
}

// Scan visits the rows whose key has the prefix, in order. See ScanFrom.
func (t *Table) Scan(ctx context.Context, prefix string) iter.Seq2[Row, error] {
	return t.ScanFrom(ctx, prefix, "")
}

// ScanFrom visits the rows whose key has the prefix and is not less than from, in
// order. It reads some rows at a time: a row that exists throughout is visited once,
// one that is created or deleted meanwhile may be visited or not. It ends after an error.
func (t *Table) ScanFrom(ctx context.Context, prefix, from string) iter.Seq2[Row, error] {
	return untilError(t.scan(ctx, prefix, from, scanRows))
}

// ScanBy is Scan that reads a number of rows at a time, at most. It is for rows that can be large: those that are read at once are in
// memory together.
func (t *Table) ScanBy(ctx context.Context, prefix string, rows int) iter.Seq2[Row, error] {
	return untilError(t.scan(ctx, prefix, "", min(rows, scanRows)))
}

// untilError ends after an error, without the row that it is about.
func untilError(rows iter.Seq2[Row, error]) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for row, err := range rows {
			if err != nil {
				yield(Row{}, err)
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// ScanEach is ScanFrom for callers that can continue without a value: a row that cannot be
// decrypted is visited, too, with its key and an [UnopenedError]. It ends after any other error.
func (t *Table) ScanEach(ctx context.Context, prefix, from string) iter.Seq2[Row, error] {
	return t.scan(ctx, prefix, from, scanRows)
}

func (t *Table) scan(ctx context.Context, prefix, from string, atOnce int) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for page, err := range t.pages(ctx, prefix, from, clientv3.WithLimit(int64(atOnce))) {
			if err != nil {
				yield(Row{}, err)
				return
			}
			if !t.visit(ctx, page, yield) {
				return
			}
		}
	}
}

// pages reads the rows whose key has the prefix and is not less than from, some at a time. It ends after an error.
func (t *Table) pages(ctx context.Context, prefix, from string, options ...clientv3.OpOption) iter.Seq2[*clientv3.GetResponse, error] {
	return func(yield func(*clientv3.GetResponse, error) bool) {
		end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(t.prefix + prefix))
		for start := t.prefix + max(prefix, from); ; {
			page, err := t.store.kv.Get(ctx, start, append(options, end)...)
			if err != nil {
				yield(nil, fmt.Errorf("scanning rows of %s%s: %w", t.prefix, prefix, err))
				return
			}
			if !yield(page, nil) || !page.More {
				return
			}
			start = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
		}
	}
}

// visit yields the rows of a page. It reports whether the scan continues.
func (t *Table) visit(ctx context.Context, page *clientv3.GetResponse, yield func(Row, error) bool) bool {
	for _, kv := range page.Kvs {
		key := string(kv.Key)
		plain, err := t.store.decrypt(ctx, key, kv.Value)
		if !yield(Row{Key: key[len(t.prefix):], Value: plain}, err) {
			return false
		}
	}
	return true
}

// put returns the operation that writes a value, without a copy of it.
func put(key string, encrypted []byte) clientv3.Op {
	op := clientv3.OpPut(key, "")
	op.WithValueBytes(encrypted)
	return op
}

// lastOfEach returns the rows without those that a later row of the same key replaces.
func lastOfEach(rows []Row) []Row {
	last := make(map[string]int, len(rows))
	for i, row := range rows {
		last[row.Key] = i
	}
	if len(last) == len(rows) {
		return rows
	}
	kept := make([]Row, 0, len(last))
	for i, row := range rows {
		if last[row.Key] == i {
			kept = append(kept, row)
		}
	}
	return kept
}

// batch collects operations into as few transactions as the limits allow.
type batch struct {
	kv    clientv3.KV
	ops   []clientv3.Op
	bytes int
}

// add adds an operation of a size. If it does not fit, add first commits those before it.
func (b *batch) add(ctx context.Context, op clientv3.Op, size int) error {
	if len(b.ops) == MaxAtomicRows || b.bytes+size > MaxAtomicBytes {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.ops = append(b.ops, op)
	b.bytes += size
	return nil
}

// flush commits the collected operations.
func (b *batch) flush(ctx context.Context) error {
	if len(b.ops) == 0 {
		return nil
	}
	_, err := b.kv.Txn(ctx).Then(b.ops...).Commit()
	b.ops, b.bytes = b.ops[:0], 0
	return err
}
