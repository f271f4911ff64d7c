// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hmac answers how to tell later whether content that may be secret has changed, without keeping it: by a
// hash under a key of the server's own. A plain hash of a password can be found by trying passwords, by everybody who
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
	// tableName and rowKey are where the key is kept.
	tableName = "keyedhash"
	rowKey    = "key"
	// keySize is that of the hash: more adds nothing.
	keySize = sha256.Size
)

// Hasher hashes under one key. It may be used concurrently.
type Hasher struct {
	key []byte
}

// Open returns the hasher of a work store, whose key is made when it is first asked for. It is a row of the store and
// sealed as such: all replicas have the same, it stays when the keys change under which the store is sealed, and comes
// along with backups. A store that is made anew has another, and every hash is another then.
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

// Sum returns 64 hexadecimal digits that depend on every part and on where one ends and the next begins, and tell
// nothing about them. Sums of different purposes cannot be compared with each other.
func (h *Hasher) Sum(purpose string, parts ...[]byte) string {
	hash := hmac.New(sha256.New, h.key)
	write := func(part []byte) {
		// A hash takes everything.
		_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		_, _ = hash.Write(part)
	}
	write([]byte(purpose))
	for _, part := range parts {
		write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}
