// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

var (
	errStoreFails = errors.New("store fails")
	errKilled     = errors.New("process killed")
)

// memoryKV is a store in memory without goroutines, for tests with virtual time. It implements only what writes need.
type memoryKV struct {
	clientv3.KV

	mu   sync.Mutex
	rows map[string]string
	// times are the times of successful transactions, order the keys in the order of their first put.
	times []time.Time
	order []string
	// attempts is the number of transactions, including failed ones.
	attempts int
	// latency is the duration of a transaction; hangs makes it block until its context is done.
	latency time.Duration
	hangs   bool
	// failure is returned by every transaction.
	failure error
	// failAt and killAt are numbers of attempts: that one fails, or that one and all after it.
	failAt, killAt int
	// maxValue is the maximum size of a value, 0 for no limit.
	maxValue int
}

func newMemoryKV() *memoryKV { return &memoryKV{rows: map[string]string{}} }

func (m *memoryKV) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// stored returns the rows of a table.
func (m *memoryKV) stored() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.rows)
}

func (m *memoryKV) transactions() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.times)
}

func (m *memoryKV) Get(_ context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &clientv3.GetResponse{Count: int64(len(m.within(clientv3.OpGet(key, options...))))}, nil
}

func (m *memoryKV) Delete(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	return nil, m.commit(ctx, []clientv3.Op{clientv3.OpDelete(key, options...)})
}

func (m *memoryKV) Txn(ctx context.Context) clientv3.Txn { return &memoryTxn{kv: m, ctx: ctx} }

func (m *memoryKV) commit(ctx context.Context, ops []clientv3.Op) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, op := range ops {
		if m.maxValue > 0 && len(op.ValueBytes()) > m.maxValue {
			return rpctypes.ErrRequestTooLarge
		}
	}
	for _, op := range ops {
		m.make(op)
	}
	m.times = append(m.times, time.Now())
	return nil
}

// begin waits for the duration of a transaction, and returns its error.
func (m *memoryKV) begin(ctx context.Context) error {
	m.mu.Lock()
	m.attempts++
	latency, hangs, failure := m.latency, m.hangs, m.failure
	switch {
	case m.killAt > 0 && m.attempts >= m.killAt:
		failure = errKilled
	case m.attempts == m.failAt:
		failure = errStoreFails
	}
	m.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(latency) //nolint:forbidigo // virtual time
	return failure
}

func (m *memoryKV) make(op clientv3.Op) {
	if !op.IsPut() {
		for _, key := range m.within(op) {
			delete(m.rows, key)
		}
		return
	}
	key := string(op.KeyBytes())
	if _, found := m.rows[key]; !found {
		m.order = append(m.order, key)
	}
	m.rows[key] = string(op.ValueBytes())
}

// within returns the keys of an operation.
func (m *memoryKV) within(op clientv3.Op) (keys []string) {
	from, to := string(op.KeyBytes()), string(op.RangeBytes())
	for key := range m.rows {
		if key == from || to != "" && from <= key && key < to {
			keys = append(keys, key)
		}
	}
	return keys
}

type memoryTxn struct {
	clientv3.Txn
	kv  *memoryKV
	ctx context.Context //nolint:containedctx // of the transaction, as in clientv3
	ops []clientv3.Op
}

func (x *memoryTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	x.ops = append(x.ops, ops...)
	return x
}

func (x *memoryTxn) Commit() (*clientv3.TxnResponse, error) {
	return &clientv3.TxnResponse{Succeeded: true}, x.kv.commit(x.ctx, x.ops)
}
