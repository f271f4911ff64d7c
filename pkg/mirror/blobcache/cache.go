// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package blobcache keeps contents of Git files on disk, by the hash of their blob.
//
// It is a cache: nothing is lost with it, and what it returns has been verified by its hash. It is bounded, and what has
// not been used for longest is removed first. A file of the cache is compressed and then encrypted:
//
//	{first two digits of the hash}/{other digits}        a content
//	{first two digits of the hash}/{other digits}-noted  a content with a note
//
// A note is what its writer, the mirror, wants to know of the object beside the content. There can be a note without the
// content. A note is not verified beyond what the encryption verifies. A content without a note is never taken for one with
// an empty note.
package blobcache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/s2"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

const (
	// DefaultMaxBytes is the default of Config.MaxBytes: 256 MiB, enough for 60 000 files of up to 4 KiB.
	DefaultMaxBytes = 256 << 20
	// maxContent bounds a content with its note. It is twice the limit of an object in etcd.
	maxContent = 4 << 20
	// useInterval is how exactly the last use of a file is known. A shorter one would write more often.
	useInterval = time.Hour
)

// Config configures a Cache.
type Config struct {
	// Dir is the folder. It is created if it does not exist, with mode 0700.
	Dir string
	// MaxBytes bounds the disk space of all files in bytes; 0 is DefaultMaxBytes.
	MaxBytes int64
	// Transformer encrypts the files. Required.
	Transformer value.Transformer
}

// Cache is a cache of contents. It is safe for concurrent use. A nil Cache is empty and keeps nothing.
type Cache struct {
	config Config
	// encrypt and decrypt convert the plain form of the file of a blob to the stored one and back. They wait for nothing.
	encrypt, decrypt func(blob gitrepo.Hash, data []byte) ([]byte, error)
	// bytes is the disk space of the files. A file that is written again counts twice until the files are counted again.
	bytes atomic.Int64
	// evicting is held while files are removed.
	evicting sync.Mutex
	// failed is when a failure to write was last logged, in Unix seconds.
	failed atomic.Int64
}

// Open opens a cache. Files of an earlier process stay in it.
func Open(ctx context.Context, config Config) (*Cache, error) {
	if config.MaxBytes == 0 {
		config.MaxBytes = DefaultMaxBytes
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of cached contents: %w", err)
	}
	ctx = context.WithoutCancel(ctx)
	c := &Cache{config: config}
	c.encrypt = func(blob gitrepo.Hash, data []byte) ([]byte, error) {
		return config.Transformer.TransformToStorage(ctx, data, value.DefaultContext(blob[:]))
	}
	c.decrypt = func(blob gitrepo.Hash, data []byte) ([]byte, error) {
		plain, _, err := config.Transformer.TransformFromStorage(ctx, data, value.DefaultContext(blob[:]))
		return plain, err
	}
	files, err := c.files()
	if err != nil {
		return nil, err
	}
	c.bytes.Store(sizeOf(files))
	return c, nil
}

// Get returns the content of a blob. found is false if the cache does not have it.
func (c *Cache) Get(blob gitrepo.Hash) (content []byte, found bool) {
	if content, _, found = c.GetNoted(blob); content != nil || c == nil {
		return content, found
	}
	content, _, found = c.read(blob, c.path(blob))
	return content, found
}

// GetNoted returns the content of a blob with its note. content is nil if only the note was put. found is false if the cache has no note.
func (c *Cache) GetNoted(blob gitrepo.Hash) (content, note []byte, found bool) {
	if c == nil {
		return nil, nil, false
	}
	return c.read(blob, c.notedPath(blob))
}

// read reads a file.
func (c *Cache) read(blob gitrepo.Hash, path string) (content, note []byte, found bool) {
	stored, err := os.ReadFile(path) //nolint:gosec // the name is a hash
	if err != nil {
		return nil, nil, false
	}
	content, note, err = c.open(blob, stored)
	if err != nil {
		c.remove(path, int64(len(stored)))
		return nil, nil, false
	}
	if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > useInterval {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // Otherwise it is removed earlier.
	}
	return content, note, true
}

// Put adds the content of a blob. If that fails, the cache does not have it.
func (c *Cache) Put(blob gitrepo.Hash, content []byte) {
	if c != nil {
		if content == nil {
			content = []byte{} // An empty file.
		}
		c.write(blob, c.path(blob), content, nil)
	}
}

// PutNoted adds the content of a blob with a note, or replaces the note. If content is nil, the cache keeps only the note.
func (c *Cache) PutNoted(blob gitrepo.Hash, content, note []byte) {
	if c != nil {
		c.write(blob, c.notedPath(blob), content, note)
	}
}

func (c *Cache) write(blob gitrepo.Hash, path string, content, note []byte) {
	if len(content)+len(note) > maxContent {
		return
	}
	stored, err := c.seal(blob, content, note)
	if err == nil {
		err = write(path, stored)
	}
	if err != nil {
		c.logFailure(err)
		return
	}
	if c.bytes.Add(onDisk(int64(len(stored)))) > c.config.MaxBytes {
		c.evict()
	}
}

// HasNoted reports whether the cache has a file with a note for a blob, without reading it.
func (c *Cache) HasNoted(blob gitrepo.Hash) bool {
	if c == nil {
		return false
	}
	_, err := os.Stat(c.notedPath(blob))
	return err == nil
}

func (c *Cache) path(blob gitrepo.Hash) string {
	name := blob.String()
	return filepath.Join(c.config.Dir, name[:2], name[2:])
}

func (c *Cache) notedPath(blob gitrepo.Hash) string { return c.path(blob) + "-noted" }

// write writes a file. A file that is incomplete after a crash is recognized when it is read.
func write(path string, stored []byte) error {
	err := os.WriteFile(path, stored, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = os.WriteFile(path, stored, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("write a cached content: %w", err)
	}
	return nil
}

// logFailure logs at most once a minute that a content could not be written: the disk may be full.
func (c *Cache) logFailure(err error) {
	now, last := time.Now().Unix(), c.failed.Load()
	if now-last >= 60 && c.failed.CompareAndSwap(last, now) {
		klog.Background().Error(err, "Failed to keep the content of a file; more failures are not logged for a minute")
	}
}

// seal returns the stored form of a content with its note, compressed and encrypted: the length of the content plus one, or zero if there
// is none; the content; and the note.
func (c *Cache) seal(blob gitrepo.Hash, content, note []byte) ([]byte, error) {
	size := 0
	if content != nil {
		size = len(content) + 1
	}
	plain := binary.AppendUvarint(make([]byte, 0, len(content)+len(note)+binary.MaxVarintLen32), uint64(size))
	plain = append(append(plain, content...), note...)
	stored, err := c.encrypt(blob, s2.Encode(nil, plain))
	if err != nil {
		return nil, fmt.Errorf("encrypt a cached content: %w", err)
	}
	return stored, nil
}

var errDamaged = errors.New("a cached content is damaged")

// open is the reverse of seal.
func (c *Cache) open(blob gitrepo.Hash, stored []byte) (content, note []byte, err error) {
	packed, err := c.decrypt(blob, stored)
	if err != nil {
		return nil, nil, fmt.Errorf("decrypt a cached content: %w", err)
	}
	if n, err := s2.DecodedLen(packed); err != nil || n > maxContent+binary.MaxVarintLen32 {
		return nil, nil, errDamaged
	}
	plain, err := s2.Decode(nil, packed)
	if err != nil {
		return nil, nil, errDamaged
	}
	size, n := binary.Uvarint(plain)
	switch {
	case n <= 0 || size > uint64(len(plain)-n)+1:
		return nil, nil, errDamaged
	case size == 0:
		return nil, plain[n:], nil
	}
	end := n + int(size) - 1
	content, note = plain[n:end:end], plain[end:]
	if gitrepo.BlobHash(content) != blob {
		return nil, nil, errDamaged
	}
	return content, note, nil
}
