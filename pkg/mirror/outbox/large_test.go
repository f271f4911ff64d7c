// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"context"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
)

// countingKV counts the bytes of the values that are read.
type countingKV struct {
	clientv3.KV
	read int
}

func (c *countingKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	response, err := c.KV.Get(ctx, key, options...)
	if err == nil {
		for _, kv := range response.Kvs {
			c.read += len(kv.Value)
		}
	}
	return response, err
}

// TestLargeRowsAreReadOneByOne checks that rows of a megabyte are not read together to push the first of them, nor to remove all.
func TestLargeRowsAreReadOneByOne(t *testing.T) {
	const rows, size = 20, 1 << 20
	kv := &countingKV{KV: bolttest.NewClient(t)}
	s, queue := open(t, kv), outbox.NewQueue()
	s.run()
	for range rows {
		s.enqueue(strings.Repeat("x", size))
	}
	s.eventually("all rows are durable", func() bool { return len(s.durable) == rows })
	for _, sequence := range s.durable {
		queue.Durable(outbox.Row{Sequence: sequence, Change: outbox.Change{Path: "a", Content: make([]byte, size)}})
	}
	kv.read = 0
	if found, err := s.Next(t.Context(), "shop", queue.Fitting(200, size), size); len(found) != 1 || err != nil {
		t.Errorf("%d rows, error %v", len(found), err)
	}
	if err := s.RemoveAll(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if kv.read > 2*size {
		t.Errorf("%d bytes were read", kv.read)
	}
	if found, err := s.Next(t.Context(), "shop", rows, size); len(found) != 0 || err != nil {
		t.Errorf("%d rows are left, error %v", len(found), err)
	}
}

// TestFitting checks how many rows are read for a limit of bytes.
func TestFitting(t *testing.T) {
	queue := outbox.NewQueue()
	if got := queue.Fitting(200, 100); got != 1 {
		t.Errorf("%d rows of none", got)
	}
	for i := range 10 {
		queue.Durable(outbox.Row{Sequence: uint64(i + 1), Change: outbox.Change{Content: make([]byte, 10*(i+1))}})
	}
	for _, test := range []struct{ limit, bytes, want int }{{200, 1 << 20, 10}, {3, 1 << 20, 3}, {200, 30, 2}, {200, 31, 3}, {200, 1, 1}} {
		if got := queue.Fitting(test.limit, test.bytes); got != test.want {
			t.Errorf("%d rows of at most %d have %d bytes, want %d", got, test.limit, test.bytes, test.want)
		}
	}
}
