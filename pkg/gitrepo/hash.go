// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"crypto/sha1" //nolint:gosec // Git names its objects by SHA-1; nothing here relies on it for security.
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
)

// Hash names a Git object; the zero Hash names none.
type Hash = plumbing.Hash

// BlobHash returns the hash that Git gives a file of this content.
func BlobHash(content []byte) Hash {
	return objectHash(plumbing.BlobObject, content)
}

// objectHash uses crypto/sha1, which runs on the processor's SHA instructions, rather than the collision-detecting
// implementation of the library: what is hashed here is our own content or is checked by the server again.
func objectHash(kind plumbing.ObjectType, data []byte) Hash {
	var header [32]byte
	prefix := append(header[:0], kind.Bytes()...)
	prefix = append(prefix, ' ')
	prefix = strconv.AppendInt(prefix, int64(len(data)), 10)
	prefix = append(prefix, 0)

	digest := sha1.New() //nolint:gosec // See the import.
	digest.Write(prefix)
	digest.Write(data)
	var hash Hash
	digest.Sum(hash[:0])
	return hash
}
