// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registrytest opens the storage of all kinds for tests.
package registrytest

import (
	"context"
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/install"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// Prefix is the prefix of the keys of objects.
const Prefix = "/registry"

// Plain are Transformers that do not encrypt.
type Plain struct{}

// TransformerForResource implements value.ResourceTransformers.
func (Plain) TransformerForResource(schema.GroupResource) value.Transformer {
	return identity.NewEncryptCheckTransformer()
}

// NewStorage opens all kinds in a new bbolt file, without watch caches, which take a moment to fill. Transformers can be nil, and change
// edits the configuration; kv is the file. The storage is closed when the test ends.
func NewStorage(
	t testing.TB, transformers value.ResourceTransformers, change func(config *registry.Config, kv clientv3.KV),
) *registry.Storage {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	engine, err := bolt.Open(ctx, filepath.Join(t.TempDir(), "api.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	codecs := serializer.NewCodecFactory(scheme)
	etcd := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(Prefix, codecs.LegacyCodec(v1alpha1.SchemeGroupVersion)))
	etcd.EnableWatchCache = false
	server := genericapiserver.NewConfig(codecs)
	server.ResourceTransformers = transformers
	if err := bolt.ApplyTo(ctx, engine, etcd, server); err != nil {
		t.Fatal(err)
	}
	config := registry.Config{Scheme: scheme, RESTOptions: server.RESTOptionsGetter}
	change(&config, bolt.NewClient(ctx, engine).KV)
	storage, err := registry.NewStorage(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, endpoint := range storage.Endpoints {
			endpoint.Destroy()
		}
		cancel()
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return storage
}
