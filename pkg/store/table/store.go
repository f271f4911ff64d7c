// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
)

// Store is a set of tables below one prefix. It may be used concurrently.
type Store struct {
	kv          clientv3.KV
	watcher     clientv3.Watcher
	prefix      string
	transformer value.Transformer
}

// Option configures a Store.
type Option func(*Store)

// WithTransformer encrypts values with a transformer. The default stores them as
// they are, and refuses to read values that upstream's transformers have encrypted.
func WithTransformer(transformer value.Transformer) Option {
	return func(s *Store) { s.transformer = transformer }
}

// New returns the store that kv holds below prefix. Nothing else may write there.
func New(kv clientv3.KV, prefix string, options ...Option) *Store {
	s := &Store{
		kv:          kv,
		prefix:      strings.TrimSuffix(prefix, "/"),
		transformer: identity.NewEncryptCheckTransformer(),
	}
	for _, option := range options {
		option(s)
	}
	return s
}

// Table returns the table with a name. A table exists as long as it has rows.
func (s *Store) Table(name string) *Table {
	return &Table{store: s, name: name, prefix: s.prefix + "/" + url.PathEscape(name) + "/"}
}

func (s *Store) encrypt(ctx context.Context, key string, plain []byte) ([]byte, error) {
	encrypted, err := s.transformer.TransformToStorage(ctx, plain, value.DefaultContext(key))
	if err != nil {
		return nil, fmt.Errorf("encrypting %s: %w", key, err)
	}
	return encrypted, nil
}

// UnopenedError reports a value that cannot be decrypted: its encryption key is missing, or the value is damaged.
type UnopenedError struct {
	// Key is the whole key.
	Key string
	Err error
}

func (e *UnopenedError) Error() string { return "decrypting " + e.Key + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *UnopenedError) Unwrap() error { return e.Err }

func (s *Store) decrypt(ctx context.Context, key string, encrypted []byte) ([]byte, error) {
	plain, _, err := s.transformer.TransformFromStorage(ctx, encrypted, value.DefaultContext(key))
	if err != nil {
		return nil, &UnopenedError{Key: key, Err: err}
	}
	return plain, nil
}
