// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// ApplyTo makes a generic API server keep its objects in the engine. It stands in
// for EtcdOptions.ApplyTo, from which it takes everything that does not concern
// the connection to etcd: encoding, prefix, watch cache, encryption at rest. The
// options themselves stay as they are.
//
//	etcd := options.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", nil))
//	etcd.StorageConfig.EncodeVersioner = schema.GroupVersions{v1alpha1.SchemeGroupVersion}
//	etcd.StorageConfig.Codec = codecs.LegacyCodec(v1alpha1.SchemeGroupVersion)
//	errs := bolt.ValidateOptions(etcd) // instead of etcd.Validate()
//
//	config := server.NewRecommendedConfig(codecs)
//	... apply the other options ...
//	engine, err := bolt.Open(ctx, path, bolt.Options{})
//	err = bolt.ApplyTo(ctx, engine, etcd, &config.Config)
//	s, err := config.Complete().New("slipstream", server.NewEmptyDelegate())
//	... install the API group with config.RESTOptionsGetter, run ...
//	err = engine.Close() // after the server has stopped
//
// With etcd instead of bbolt, call etcd.Validate() and etcd.ApplyTo(&config.Config)
// and leave the engine out; nothing else differs. An options.RecommendedOptions
// that applies its own Etcd would dial etcd: set its Etcd to nil and keep the
// EtcdOptions beside it.
//
// ctx ends the watches of the server's storages, so it must outlive the server's
// drain; a list within the first moments may answer that the cache initialises,
// until /readyz is well.
func ApplyTo(ctx context.Context, e *Engine, etcd *options.EtcdOptions, config *server.Config) error {
	uncached, err := uncachedResources(etcd)
	if err != nil {
		return err
	}
	local := *etcd
	// These would dial etcd.
	local.SkipHealthEndpoints = true
	if local.StorageConfig.StorageObjectCountTracker == nil {
		local.StorageConfig.StorageObjectCountTracker = config.StorageObjectCountTracker
	}
	storageFactory := unconnectedFactory{&options.SimpleStorageFactory{StorageConfig: local.StorageConfig}}
	if err := local.ApplyWithStorageFactoryTo(storageFactory, config); err != nil {
		return fmt.Errorf("applying storage options: %w", err)
	}
	config.RESTOptionsGetter = NewRESTOptionsGetter(ctx, e, config.RESTOptionsGetter, uncached)
	config.AddHealthChecks(HealthCheck("bbolt", e))
	return nil
}

// ValidateOptions is EtcdOptions.Validate without the check for etcd's address.
func ValidateOptions(etcd *options.EtcdOptions) []error {
	local := *etcd
	local.StorageConfig.Type = storagebackend.StorageTypeUnset
	local.StorageConfig.Transport.ServerList = []string{"bbolt"}
	return local.Validate()
}

// HealthCheck returns a check that fails if the engine is closed, refuses writes, or does not process its queue of
// writes. A full disk does not fail it: reads are still served.
func HealthCheck(name string, e *Engine) healthz.HealthChecker {
	return healthz.NamedCheck(name, func(r *http.Request) error {
		return e.Check(r.Context())
	})
}

func uncachedResources(etcd *options.EtcdOptions) (func(schema.GroupResource) bool, error) {
	sizes, err := options.ParseWatchCacheSizes(etcd.WatchCacheSizes)
	if err != nil {
		return nil, fmt.Errorf("reading watch cache sizes: %w", err)
	}
	return func(resource schema.GroupResource) bool {
		size, set := sizes[resource]
		return !etcd.EnableWatchCache || set && size == 0
	}, nil
}

// unconnectedFactory names no backends: upstream polls the size of those that it names over a connection.
type unconnectedFactory struct {
	serverstorage.StorageFactory
}

func (unconnectedFactory) Configs() []storagebackend.Config  { return nil }
func (unconnectedFactory) Backends() []serverstorage.Backend { return nil }
