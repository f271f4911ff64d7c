// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"sync/atomic"

	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
)

// resumable is upstream's watch cache, except for watches from before it was filled. The cache holds the changes since
// the process was started and answers such a watch with 410 Expired, so that after a restart every client would list
// again. The engine's log is older than the process: the store below serves these watches, and they resume, unless the
// revisions that they need are compacted.
type resumable struct {
	*cacher.CacheDelegator
	store    storage.Interface
	revision func() int64
	// since is a revision at or before which the cache was filled, 0 until that is known.
	since atomic.Int64
}

var _ storage.Interface = &resumable{}

func newResumable(cache *cacher.CacheDelegator, store storage.Interface, revision func() int64) *resumable {
	return &resumable{CacheDelegator: cache, store: store, revision: revision}
}

// Watch serves a watch from the cache or, if it starts before the cache, from the store.
func (r *resumable) Watch(ctx context.Context, key string, opts storage.ListOptions) (apiwatch.Interface, error) {
	if opts.SendInitialEvents == nil && r.precedesCache(opts.ResourceVersion) {
		return r.store.Watch(ctx, key, opts)
	}
	return r.CacheDelegator.Watch(ctx, key, opts)
}

// precedesCache reports whether the cache may lack changes since a version. Versions that name no point in the past are
// served by the cache.
func (r *resumable) precedesCache(resourceVersion string) bool {
	from, err := r.Versioner().ParseResourceVersion(resourceVersion)
	if err != nil || from == 0 {
		return false
	}
	if r.since.Load() == 0 && r.ReadinessCheck() == nil {
		// The cache was filled before this, at a revision that is not newer.
		r.since.CompareAndSwap(0, r.revision())
	}
	if since := r.since.Load(); since != 0 {
		return int64(from) < since
	}
	return int64(from) <= r.revision()
}
