// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hmac detects changes of content that may be secret without storing the content: by a hash under a key of
// the server. A plain hash of a password can be reversed by trying passwords, by everyone who
// sees it in an object, a log or a backup.
package hmac

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// tableName and rowKey name the row of the key.
	tableName = "hmac"
	rowKey    = "key"
	// keySize is the size of the hash. A longer key adds nothing.
	keySize = sha256.Size
)

// Hasher hashes under one key. It may be used concurrently.
type Hasher struct {
	key []byte
}

// Open returns the hasher of a work store and creates its key if the store has none. The key is a row of the store and
// encrypted like every row: all replicas share it, a rotation of encryption keys does not change it, and backups contain
// it. A new store has a new key, and all hashes change.
func Open(ctx context.Context, store *table.Store) (*Hasher, error) {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // Never fails; the process ends if there is no randomness.
	key, err := store.Table(tableName).Create(ctx, table.Row{Key: rowKey, Value: key})
	if err != nil {
		return nil, fmt.Errorf("making the key for hashes: %w", err)
	}
	if len(key) != keySize {
		return nil, fmt.Errorf("the key for hashes has %d bytes, want %d", len(key), keySize)
	}
	return &Hasher{key: key}, nil
}

// Sum returns 64 hexadecimal digits that depend on every part and on the boundaries between parts, and reveal
// nothing about them. Sums of different purposes cannot be compared with each other.
func (h *Hasher) Sum(purpose string, parts ...[]byte) string {
	hash := hmac.New(sha256.New, h.key)
	write := func(part []byte) {
		// Writing to a hash never fails.
		_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		_, _ = hash.Write(part)
	}
	write([]byte(purpose))
	for _, part := range parts {
		write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
