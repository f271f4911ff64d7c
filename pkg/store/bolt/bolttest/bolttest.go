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
	return Open(t, filepath.Join(t.TempDir(), "store.db"))
}

// Open returns a client of the store in a file, which is created if it does not exist and closed at the cleanup of the test.
func Open(t testing.TB, file string) *clientv3.Client {
	t.Helper()
	engine, err := bolt.Open(t.Context(), file, bolt.Options{})
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
