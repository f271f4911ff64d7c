// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package blobcache keeps contents of Git files on disk, by the hash of their blob.
//
// It is a cache: nothing is lost with it, and what it returns has been verified by a checksum. It is bounded, and what has
// not been used for long is removed first. It has two parts: contents that were read, and contents with a note of their
// writer, the mirror, of what it wants to know of the object beside the content. Reading much removes nothing that
// the mirror has noted. There can be a note without the content.
// Contents and notes are compressed and then encrypted. What was noted last is also in memory: an object often changes again soon.
package blobcache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/s2"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/boundedcache"
)

const (
	// DefaultMaxBytes is the default of Config.MaxBytes: 256 MiB, enough for 150 000 files of up to 4 KiB.
	DefaultMaxBytes = 256 << 20
	// maxContent bounds a content with its note in bytes. It is twice the limit of an object in etcd.
	maxContent = 3 << 20
	// readPart divides MaxBytes: a quarter is for contents that were read.
	readPart = 4
	// maxRecent bounds the noted contents in memory in bytes, 2 MiB: about 1000 files.
	maxRecent = 2 << 20
	// recentOverhead is about what each of them takes besides content and note, in bytes.
	recentOverhead = 256
)

// Config configures a Cache.
type Config struct {
	// Dir is the folder. It is created if it does not exist, with mode 0700.
	Dir string
	// MaxBytes bounds the disk space of all files in bytes; 0 is DefaultMaxBytes.
	MaxBytes int64
	// Transformer encrypts the contents. Required.
	Transformer value.Transformer
}

// Cache is a cache of contents. It is safe for concurrent use. A nil Cache is empty and keeps nothing. Its files are open until the
// process ends.
type Cache struct {
	// encrypt and decrypt convert the plain form of the entry of a blob to the stored one and back. They wait for nothing.
	encrypt, decrypt func(blob gitrepo.Hash, data []byte) ([]byte, error)
	// contents has contents that were read, noted those with a note.
	contents, noted *segmentLog
	// recent has what was noted last, as it was noted. All of it is also in noted, unless that was removed or could not be written.
	recent *boundedcache.Cache[gitrepo.Hash, Noted]
	// failed is when a failure to write was last logged, in Unix seconds.
	failed atomic.Int64
}

// Noted is a content with a note.
type Noted struct {
	Blob gitrepo.Hash
	// Content is nil if only the note is kept.
	Content []byte
	Note    []byte
}

// Open opens a cache, with the contents of an earlier process.
func Open(ctx context.Context, config Config) (*Cache, error) {
	if config.MaxBytes == 0 {
		config.MaxBytes = DefaultMaxBytes
	}
	ctx = context.WithoutCancel(ctx)
	c := &Cache{recent: boundedcache.New[gitrepo.Hash](maxRecent, func(n Noted) int64 {
		return int64(len(n.Content)+len(n.Note)) + recentOverhead
	})}
	c.encrypt = func(blob gitrepo.Hash, data []byte) ([]byte, error) {
		return config.Transformer.TransformToStorage(ctx, data, value.DefaultContext(blob[:]))
	}
	c.decrypt = func(blob gitrepo.Hash, data []byte) ([]byte, error) {
		plain, _, err := config.Transformer.TransformFromStorage(ctx, data, value.DefaultContext(blob[:]))
		return plain, err
	}
	var err error
	if c.contents, err = openLog(filepath.Join(config.Dir, "contents"), config.MaxBytes/readPart); err != nil {
		return nil, err
	}
	if c.noted, err = openLog(filepath.Join(config.Dir, "noted"), config.MaxBytes-config.MaxBytes/readPart); err != nil {
		return nil, errors.Join(err, c.contents.close())
	}
	return c, nil
}

// Get returns the content of a blob. found is false if the cache does not have it.
func (c *Cache) Get(blob gitrepo.Hash) (content []byte, found bool) {
	if c == nil {
		return nil, false
	}
	if content, _, found = c.read(c.noted, blob); content != nil {
		return content, found
	}
	content, _, found = c.read(c.contents, blob)
	return content, found
}

// GetNoted returns a content with its note. found is false if the cache has no note. The caller does not change what is returned.
func (c *Cache) GetNoted(blob gitrepo.Hash) (content, note []byte, found bool) {
	if c == nil {
		return nil, nil, false
	}
	if last, found := c.recent.Get(blob); found {
		return last.Content, last.Note, true
	}
	return c.read(c.noted, blob)
}

// read reads an entry of a log. One that cannot be decoded, as after a change of the encryption key, is forgotten.
func (c *Cache) read(from *segmentLog, blob gitrepo.Hash) (content, note []byte, found bool) {
	stored, at, found := from.get(blob)
	if !found {
		return nil, nil, false
	}
	content, note, err := c.decode(blob, stored)
	if err != nil {
		from.forget(blob, at)
		return nil, nil, false
	}
	return content, note, true
}

// Put adds the content of a blob. If that fails, the cache does not have it.
func (c *Cache) Put(blob gitrepo.Hash, content []byte) {
	if content == nil {
		content = []byte{} // An empty file.
	}
	if c != nil {
		c.add(c.contents, Noted{Blob: blob, Content: content})
	}
}

// PutNoted adds contents with their notes, or replaces the notes.
func (c *Cache) PutNoted(contents ...Noted) {
	if c == nil {
		return
	}
	c.add(c.noted, contents...)
	for _, each := range contents {
		// The content may be a part of something larger.
		c.recent.Put(each.Blob, Noted{Blob: each.Blob, Content: bytes.Clone(each.Content), Note: bytes.Clone(each.Note)})
	}
}

// add adds contents to a log.
func (c *Cache) add(to *segmentLog, contents ...Noted) {
	entries := make([]entry, 0, len(contents))
	for _, each := range contents {
		if len(each.Content)+len(each.Note) > maxContent {
			continue
		}
		stored, err := c.encode(each.Blob, each.Content, each.Note)
		if err != nil {
			c.logFailure(err)
			continue
		}
		entries = append(entries, entry{each.Blob, stored})
	}
	if err := to.add(entries...); err != nil {
		c.logFailure(err)
	}
}

// HasNoted reports whether the cache has a note for a blob, without reading it.
func (c *Cache) HasNoted(blob gitrepo.Hash) bool { return c != nil && c.noted.has(blob) }

// logFailure logs at most once a minute that a content could not be written: the disk may be full.
func (c *Cache) logFailure(err error) {
	now, last := time.Now().Unix(), c.failed.Load()
	if now-last >= 60 && c.failed.CompareAndSwap(last, now) {
		klog.Background().Error(err, "Failed to keep the content of a file; more failures are not logged for a minute")
	}
}

// scratch is the memory that encode needs for a moment.
type scratch struct{ plain, packed []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// maxScratch is the size in bytes beyond which a scratch is not kept.
const maxScratch = 64 << 10

// encode returns the stored form of a content with its note, compressed and encrypted: the length of the content plus one, or zero if there
// is none; the content; and the note.
func (c *Cache) encode(blob gitrepo.Hash, content, note []byte) ([]byte, error) {
	size := 0
	if content != nil {
		size = len(content) + 1
	}
	s, _ := scratches.Get().(*scratch)
	s.plain = binary.AppendUvarint(s.plain[:0], uint64(size))
	s.plain = append(append(s.plain, content...), note...)
	s.packed = s2.Encode(s.packed[:cap(s.packed)], s.plain)
	packed := bytes.Clone(s.packed) // What encrypts it may return it.
	if cap(s.plain)+cap(s.packed) <= maxScratch {
		scratches.Put(s)
	}
	stored, err := c.encrypt(blob, packed)
	if err != nil {
		return nil, fmt.Errorf("encrypt a cached content: %w", err)
	}
	return stored, nil
}

var errDamaged = errors.New("a cached content is damaged")

// decode is the reverse of encode.
func (c *Cache) decode(blob gitrepo.Hash, stored []byte) (content, note []byte, err error) {
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
	return plain[n:end:end], plain[end:], nil
}
