// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"crypto/sha1" //nolint:gosec // Git names its objects by SHA-1; nothing here relies on it for security.
	"hash"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
)

// Hash names a Git object; the zero Hash names none.
type Hash = plumbing.Hash

// ParseHash reads a hash in hexadecimal; what is none gives the zero Hash.
func ParseHash(text string) Hash { return plumbing.NewHash(text) }

// BlobHash returns the hash that Git gives a file of this content.
func BlobHash(content []byte) Hash {
	return objectHash(plumbing.BlobObject, content)
}

func objectHash(kind plumbing.ObjectType, content []byte) Hash {
	digest := newObjectDigest(kind, len(content))
	digest.Write(content)
	var sum Hash
	digest.Sum(sum[:0])
	return sum
}

// newObjectDigest starts the hash of an object whose content is yet to be written. It uses crypto/sha1, which runs on
// the processor's SHA instructions, rather than the collision-detecting implementation of the library: what is hashed
// here is our own content or is checked by the server again.
func newObjectDigest(kind plumbing.ObjectType, size int) hash.Hash {
	var header [32]byte
	prefix := append(header[:0], kind.Bytes()...)
	prefix = append(prefix, ' ')
	prefix = strconv.AppendInt(prefix, int64(size), 10)
	prefix = append(prefix, 0)
	digest := sha1.New() //nolint:gosec // See the import.
	digest.Write(prefix)
	return digest
}
