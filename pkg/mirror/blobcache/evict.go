// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package blobcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// file is a file of the cache.
type file struct {
	path string
	size int64
	used time.Time
}

// block is the disk space of the smallest file on common file systems, in bytes.
const block = 4096

// onDisk returns the disk space of a file.
func onDisk(size int64) int64 { return (size + block - 1) / block * block }

func sizeOf(files []file) int64 {
	sum := int64(0)
	for _, f := range files {
		sum += onDisk(f.size)
	}
	return sum
}

// files returns the files of the cache.
func (c *Cache) files() ([]file, error) {
	var files []file
	err := filepath.WalkDir(c.config.Dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Removed meanwhile.
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		if info, err := entry.Info(); err == nil {
			files = append(files, file{path, info.Size(), info.ModTime()})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the cached contents: %w", err)
	}
	return files, nil
}

// evict counts the files and removes those that have not been used for longest, until a fifth of the space is free. If files are being
// removed already, it does nothing.
func (c *Cache) evict() {
	if !c.evicting.TryLock() {
		return
	}
	defer c.evicting.Unlock()
	files, err := c.files()
	if err != nil {
		c.logFailure(err)
		return
	}
	c.bytes.Store(sizeOf(files))
	slices.SortFunc(files, func(a, b file) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if c.bytes.Load() <= c.config.MaxBytes/5*4 {
			return
		}
		c.remove(f.path, f.size)
	}
}

// remove removes a file.
func (c *Cache) remove(path string, size int64) {
	if os.Remove(path) == nil {
		c.bytes.Add(-onDisk(size))
	}
}
