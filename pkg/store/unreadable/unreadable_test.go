// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/encryption"
)

// hookedKV calls a function before each read. If fail returns an error, the read fails.
type hookedKV struct {
	clientv3.KV
	before func(key string)
	fail   func(key string) error
}

func (kv *hookedKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	kv.before(key)
	if err := kv.fail(key); err != nil {
		return nil, err
	}
	return kv.KV.Get(ctx, key, opts...)
}

const badKey = "/registry/configbutler.ai/gitrepoconfigs/shop/bad"

// newStore returns a store with one record, which cannot be read.
func newStore(t *testing.T) (*Store, *hookedKV) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "identity.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"+
		"resources: [{resources: ['*.configbutler.ai'], providers: [identity: {}]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	encrypter, err := encryption.Try(t.Context(), encryption.File{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	kv := &hookedKV{bolttest.NewKV(t), func(string) {}, func(string) error { return nil }}
	put(t, kv, badKey, "bad")
	return &Store{Encrypter: encrypter, Rows: []encryption.Rows{encryption.Objects(kv, "/registry")}, Decode: func(plain []byte) error {
		if string(plain) == "bad" {
			return errors.New("it is bad")
		}
		return nil
	}}, kv
}

func put(t *testing.T, kv clientv3.KV, key, value string) {
	t.Helper()
	if _, err := kv.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// TestRecordThatIsReplacedMeanwhile checks that a readable record that replaces the one to be set aside is kept.
func TestRecordThatIsReplacedMeanwhile(t *testing.T) {
	store, kv := newStore(t)
	kv.before = func(key string) {
		if key == badKey { // The others read ranges.
			put(t, kv, badKey, "good")
		}
	}
	file := filepath.Join(t.TempDir(), "kept.jsonl")
	if err := store.SetAside(t.Context(), Selection{All: true}, file, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "has changed meanwhile") {
		t.Errorf("setting it aside ended with %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file exists (%v)", err)
	}
	if answer, err := kv.KV.Get(t.Context(), badKey); err != nil || len(answer.Kvs) != 1 {
		t.Errorf("the record was deleted (%v)", err)
	}
}
