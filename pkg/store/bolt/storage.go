// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"sync"

	"go.etcd.io/etcd/client/v3/kubernetes"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
)

// restOptionsGetter replaces the storage of every resource by one on the engine.
type restOptionsGetter struct {
	delegate generic.RESTOptionsGetter
	backend  backend
	// uncached reports whether a resource is served without a watch cache.
	uncached func(schema.GroupResource) bool
}

// NewRESTOptionsGetter wraps a getter so that its resources are stored in the engine: upstream's etcd3 store on
// [NewClient], under upstream's watch cache unless uncached returns true (nil means never). All other options, including
// encryption at rest, are the delegate's. [ApplyTo] calls it for a generic API server.
//
// The client lives as long as ctx.
func NewRESTOptionsGetter(
	ctx context.Context, e *Engine, delegate generic.RESTOptionsGetter, uncached func(schema.GroupResource) bool,
) generic.RESTOptionsGetter {
	client := NewClient(ctx, e)
	client.KV = etcd3.NewETCDLatencyTracker(client.KV)
	if uncached == nil {
		uncached = func(schema.GroupResource) bool { return false }
	}
	return &restOptionsGetter{
		delegate: delegate,
		backend:  backend{client: client, compactor: e, revision: e.Revision},
		uncached: uncached,
	}
}

func (g *restOptionsGetter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	opts, err := g.delegate.GetRESTOptions(resource, example)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	opts.Decorator = g.backend.cached
	if g.uncached(resource) {
		opts.Decorator = g.backend.uncached
	}
	return opts, nil
}

// backend creates storages with one client.
type backend struct {
	client    *kubernetes.Client
	compactor etcd3.Compactor
	revision  func() int64
}

var (
	_ generic.StorageDecorator = backend{}.raw
	_ generic.StorageDecorator = backend{}.cached
)

// raw creates a storage without a watch cache, as the factory of upstream's storagebackend does for etcd.
func (b backend) raw(
	config *storagebackend.ConfigForResource, resourcePrefix string, _ func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	transformer := config.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	versioner := storage.APIObjectVersioner{}
	decoder := etcd3.NewDefaultDecoder(config.Codec, versioner)
	deleteCorrupt := utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
	if deleteCorrupt {
		transformer = etcd3.WithCorruptObjErrorHandlingTransformer(transformer)
		decoder = etcd3.WithCorruptObjErrorHandlingDecoder(decoder)
	}
	store, err := etcd3.New(b.client, b.compactor, config.Codec, newFunc, newListFunc, config.Prefix, resourcePrefix,
		config.GroupResource, transformer, config.LeaseManagerConfig, decoder, versioner)
	if err != nil {
		return nil, nil, err
	}
	destroy := sync.OnceFunc(store.Close)
	if deleteCorrupt {
		return etcd3.NewStoreWithUnsafeCorruptObjectDeletion(store, config.GroupResource), destroy, nil
	}
	return store, destroy, nil
}

// uncached creates a storage without a watch cache that sends bookmarks, as a cache does.
func (b backend) uncached(
	config *storagebackend.ConfigForResource, resourcePrefix string, keyFunc func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, getAttrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	raw, destroy, err := b.raw(config, resourcePrefix, keyFunc, newFunc, newListFunc, getAttrs, triggers, indexers)
	return bookmarking{raw}, destroy, err
}

// bookmarking is a storage whose watches send the bookmarks that clients ask for. With them a client can resume a watch of objects that
// rarely change. Upstream leaves that to the watch cache.
type bookmarking struct{ storage.Interface }

// Watch serves a watch, with a bookmark after changes of other kinds.
func (b bookmarking) Watch(ctx context.Context, key string, opts storage.ListOptions) (apiwatch.Interface, error) {
	opts.ProgressNotify = opts.ProgressNotify || opts.Predicate.AllowWatchBookmarks
	return b.Interface.Watch(ctx, key, opts)
}

// cached creates a storage with a watch cache, as genericregistry.StorageWithCacher does.
func (b backend) cached(
	config *storagebackend.ConfigForResource, resourcePrefix string, keyFunc func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, getAttrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	raw, destroyRaw, err := b.raw(config, resourcePrefix, keyFunc, newFunc, newListFunc, getAttrs, triggers, indexers)
	if err != nil {
		return nil, nil, err
	}
	watchCache, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage:             raw,
		Versioner:           storage.APIObjectVersioner{},
		GroupResource:       config.GroupResource,
		EventsHistoryWindow: config.EventsHistoryWindow,
		ResourcePrefix:      resourcePrefix,
		KeyFunc:             keyFunc,
		NewFunc:             newFunc,
		NewListFunc:         newListFunc,
		GetAttrsFunc:        getAttrs,
		IndexerFuncs:        triggers,
		Indexers:            indexers,
		Codec:               config.Codec,
	})
	if err != nil {
		destroyRaw()
		return nil, nil, err
	}
	delegator := cacher.NewCacheDelegator(watchCache, raw)
	destroy := sync.OnceFunc(func() {
		delegator.Stop()
		watchCache.Stop()
		destroyRaw()
	})
	return newResumable(delegator, raw, b.revision), destroy, nil
}
