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

// MaxTxnOps is the maximum number of operations of a transaction.
const MaxTxnOps = maxTxnOps

// Resumable is the storage of a cached resource.
type Resumable = resumable

// NewResumable returns a Resumable for a cache and the store below it.
func NewResumable(cache *cacher.CacheDelegator, store storage.Interface, revision func() int64) *Resumable {
	return newResumable(cache, store, revision)
}

// WithoutSync disables syncs of commits, for tests that do not simulate power loss.
func (o Options) WithoutSync() Options {
	o.noSync = true
	return o
}

// DB returns the bbolt database of the engine.
func (e *Engine) DB() *bbolt.DB { return e.db }

// File returns the file that bbolt has open.
func (e *Engine) File() *os.File {
	return *(**os.File)(bboltField(e.db, "file"))
}

// InterceptWrites makes bbolt call writeAt instead of writing to its file. The engine must be idle during the call.
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

// SyncMetaPage makes the meta page with the newest transaction durable.
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

// Guarded runs a function that reads the mapped file.
func Guarded(read func() error) error { return guarded(read) }
