// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"io"
	"os"
	"reflect"
	"unsafe"

	"go.etcd.io/bbolt"

	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
)

// Resumable is the storage that a server gets for a cached resource.
type Resumable = resumable

// NewResumable makes one on a cache and the store below it.
func NewResumable(cache *cacher.CacheDelegator, store storage.Interface, revision func() int64) *Resumable {
	return newResumable(cache, store, revision)
}

// WithoutSync leaves commits unsynced, for tests that never lose power.
func (o Options) WithoutSync() Options {
	o.noSync = true
	return o
}

// DB is the bbolt file below the engine.
func (e *Engine) DB() *bbolt.DB { return e.db }

// File is the open file of bbolt.
func (e *Engine) File() *os.File {
	return *(**os.File)(bboltField(e.db, "file"))
}

// InterceptWrites has bbolt call a function instead of writing to its file. Nothing may write meanwhile.
func (e *Engine) InterceptWrites(writeAt func(b []byte, offset int64) (int, error)) {
	*(*func(b []byte, offset int64) (int, error))(bboltField(e.db, "ops", "writeAt")) = writeAt
}

// bboltField returns a pointer to a field that bbolt does not export.
func bboltField(db *bbolt.DB, path ...string) (pointer unsafe.Pointer) {
	field := reflect.ValueOf(db).Elem()
	for _, name := range path {
		field = field.FieldByName(name)
	}
	return field.Addr().UnsafePointer()
}

// SyncMetaPage makes the meta page of a file that counts durable.
func SyncMetaPage(f interface {
	io.ReaderAt
	syncedFile
}) error {
	meta, err := readMetaPage(f)
	if err != nil {
		return err
	}
	return syncMetaPage(f, meta)
}

// Guarded runs what reads a mapped file.
func Guarded(read func() error) error { return guarded(read) }
