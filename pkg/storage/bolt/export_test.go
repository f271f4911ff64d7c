// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
)

// SkipSync makes writes faster and no longer durable, for tests that never lose
// power. It must be called before the first write.
func (e *Engine) SkipSync() { e.db.NoSync = true }

// Resumable is the storage that a server gets for a cached resource.
type Resumable = resumable

// NewResumable makes one on a cache and the store below it.
func NewResumable(cache *cacher.CacheDelegator, store storage.Interface, revision func() int64) *Resumable {
	return newResumable(cache, store, revision)
}
