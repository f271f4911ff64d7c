// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bolttest provides empty stores for tests of other packages.
package bolttest

import (
	"context"
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// NewKV returns a store in its own file, which is closed at the cleanup of the test.
func NewKV(t testing.TB) clientv3.KV {
	t.Helper()
	return NewClient(t).KV
}

// NewClient returns a full client of a store as in NewKV.
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
