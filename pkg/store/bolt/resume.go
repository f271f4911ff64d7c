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

// resumable is upstream's watch cache, except for watches from before it was filled.
// The cache holds what it has seen since the process was started and answers such a
// watch with 410 Expired, so that after a restart every client would list anew. The
// engine's log is older than the process: the store below takes these watches, and
// they resume, unless what they need is compacted.
type resumable struct {
	*cacher.CacheDelegator
	store    storage.Interface
	revision func() int64
	// since is a revision that the cache has been filled at or before, 0 until that is known.
	since atomic.Int64
}

var _ storage.Interface = &resumable{}

func newResumable(cache *cacher.CacheDelegator, store storage.Interface, revision func() int64) *resumable {
	return &resumable{CacheDelegator: cache, store: store, revision: revision}
}

// Watch resumes from wherever the history is.
func (r *resumable) Watch(ctx context.Context, key string, opts storage.ListOptions) (apiwatch.Interface, error) {
	if opts.SendInitialEvents == nil && r.precedesCache(opts.ResourceVersion) {
		return r.store.Watch(ctx, key, opts)
	}
	return r.CacheDelegator.Watch(ctx, key, opts)
}

// precedesCache tells whether the cache cannot know all that has happened since a
// version. Versions that name no moment of the past are the cache's.
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
