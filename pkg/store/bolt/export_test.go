// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"go.etcd.io/bbolt"

	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"

	"github.com/configbutler/slipstream/pkg/store/bolt/internal/journal"
)

// Resumable is the storage that a server gets for a cached resource.
type Resumable = resumable

// NewResumable makes one on a cache and the store below it.
func NewResumable(cache *cacher.CacheDelegator, store storage.Interface, revision func() int64) *Resumable {
	return newResumable(cache, store, revision)
}

// WithDisk puts an engine's files on another disk than the operating system's.
func (o Options) WithDisk(disk journal.Disk) Options {
	o.disk = disk
	return o
}

// WithJournalBytes makes the journal's files small, and checkpoints frequent.
func (o Options) WithJournalBytes(n int64) Options {
	o.journalBytes = n
	return o
}

// DB is the bbolt file below the engine.
func (e *Engine) DB() *bbolt.DB { return e.db }

// Guarded runs what reads a mapped file.
func Guarded(read func() error) error { return guarded(read) }
