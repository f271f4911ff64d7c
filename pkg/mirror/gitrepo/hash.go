// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"crypto/sha1" //nolint:gosec // Git names its objects by SHA-1; nothing here relies on it for security.
	"hash"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
)

// Hash is the name of a Git object; the zero Hash is none.
type Hash = plumbing.Hash

// ParseHash parses a hash in hexadecimal. It returns the zero Hash for any other text.
func ParseHash(text string) Hash { return plumbing.NewHash(text) }

// BlobHash returns the hash of the blob with this content.
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

// newObjectDigest returns the digest of an object, to which the caller writes the content. It uses crypto/sha1, which
// runs on the processor's SHA instructions, rather than the library's collision-detecting implementation: the content
// is our own, or the server checks it again.
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
