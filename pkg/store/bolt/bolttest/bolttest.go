// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bolttest gives tests of other packages an empty store.
package bolttest

import (
	"context"
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// NewKV is a store in a file of its own, which is closed when the test has been cleaned up.
func NewKV(t testing.TB) clientv3.KV {
	t.Helper()
	return NewClient(t).KV
}

// NewClient is NewKV with everything that a client offers.
func NewClient(t testing.TB) *clientv3.Client {
	t.Helper()
	engine, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return bolt.NewClient(context.WithoutCancel(t.Context()), engine).Client
}
