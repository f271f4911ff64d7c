// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/apiserver"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/encryption"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

// withEach runs a benchmark without encryption, with the provider of a generated configuration, and with another.
func withEach(b *testing.B, run func(*testing.B, *encryption.Encrypter)) {
	for _, each := range []struct{ name, provider string }{
		{"plain", "{identity: {}}"},
		{"secretbox", provider("secretbox", "k", 1)},
		{"aesgcm", provider("aesgcm", "k", 1)},
	} {
		b.Run(each.name, func(b *testing.B) {
			run(b, open(b, newFile(b, configuration(everything, each.provider))))
		})
	}
}

// BenchmarkTransform measures encryption and decryption alone.
func BenchmarkTransform(b *testing.B) {
	plain, of := bytes.Repeat([]byte("x"), 1024), value.DefaultContext("/key")
	withEach(b, func(b *testing.B, encrypter *encryption.Encrypter) {
		encrypted, err := encrypter.Work().TransformToStorage(b.Context(), plain, of)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("encrypt", func(b *testing.B) {
			for range b.N {
				if _, err := encrypter.Work().TransformToStorage(b.Context(), plain, of); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("open", func(b *testing.B) {
			for range b.N {
				if _, _, err := encrypter.Work().TransformFromStorage(b.Context(), encrypted, of); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

// newObjects returns the storage of GitRepoConfigs on bbolt, without the watch cache, which would avoid reads.
func newObjects(b *testing.B, encrypter *encryption.Encrypter) storage.Interface {
	b.Helper()
	engine, err := bolt.Open(b.Context(), filepath.Join(b.TempDir(), "api.db"), bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	codecs := apiserver.NewCodecs(apiserver.NewScheme())
	codec := codecs.LegacyCodec(v1alpha1.SchemeGroupVersion)
	etcd := options.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", codec))
	etcd.EnableWatchCache = false
	config := server.NewConfig(codecs)
	config.ResourceTransformers = encrypter.Transformers()
	if err := bolt.ApplyTo(b.Context(), engine, etcd, config); err != nil {
		b.Fatal(err)
	}
	opts, err := config.RESTOptionsGetter.GetRESTOptions(repositories, &configbutler.GitRepoConfig{})
	if err != nil {
		b.Fatal(err)
	}
	objects, destroy, err := opts.Decorator(opts.StorageConfig, "/"+opts.ResourcePrefix,
		func(object runtime.Object) (string, error) {
			return storage.NamespaceKeyFunc("/"+opts.ResourcePrefix, object)
		},
		func() runtime.Object { return &configbutler.GitRepoConfig{} },
		func() runtime.Object { return &configbutler.GitRepoConfigList{} },
		func(runtime.Object) (labels.Set, fields.Set, error) { return nil, nil, nil }, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		destroy()
		if err := engine.Close(); err != nil {
			b.Error(err)
		}
	})
	return objects
}

// create creates an object of about a kilobyte.
func create(ctx context.Context, objects storage.Interface, number int) error {
	name := fmt.Sprintf("%06d", number)
	object := &configbutler.GitRepoConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: map[string]string{"note": strings.Repeat("x", 800)}},
		Spec:       configbutler.GitRepoConfigSpec{RepoURL: "https://git.example.com/a.git"},
	}
	return objects.Create(ctx, "/configbutler.ai/gitrepoconfigs/ns/"+name, object, nil, 0)
}

func BenchmarkCreateObjects(b *testing.B) {
	for _, callers := range []int{1, 32} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			withEach(b, func(b *testing.B, encrypter *encryption.Encrypter) {
				objects := newObjects(b, encrypter)
				var number atomic.Int64
				b.SetParallelism(callers)
				b.ResetTimer()
				if callers == 1 {
					for i := range b.N {
						if err := create(b.Context(), objects, i); err != nil {
							b.Fatal(err)
						}
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := create(b.Context(), objects, int(number.Add(1))); err != nil {
							b.Error(err)
						}
					}
				})
			})
		})
	}
}

func BenchmarkReadObjects(b *testing.B) {
	const many = 5000
	withEach(b, func(b *testing.B, encrypter *encryption.Encrypter) {
		objects := newObjects(b, encrypter)
		group, ctx := errgroup.WithContext(b.Context())
		group.SetLimit(64)
		for i := range many {
			group.Go(func() error { return create(ctx, objects, i) })
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
		b.Run("get", func(b *testing.B) {
			for i := range b.N {
				key := fmt.Sprintf("/configbutler.ai/gitrepoconfigs/ns/%06d", i%many)
				if err := objects.Get(b.Context(), key, storage.GetOptions{}, &configbutler.GitRepoConfig{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("list=%d", many), func(b *testing.B) {
			for range b.N {
				list := &configbutler.GitRepoConfigList{}
				err := objects.GetList(b.Context(), "/configbutler.ai/gitrepoconfigs/",
					storage.ListOptions{Predicate: storage.Everything, Recursive: true}, list)
				if err != nil || len(list.Items) != many {
					b.Fatal(len(list.Items), err)
				}
			}
		})
	})
}

func BenchmarkRows(b *testing.B) {
	const many = 5120
	withEach(b, func(b *testing.B, encrypter *encryption.Encrypter) {
		table := storetable.New(bolttest.NewKV(b), "/registry-work", storetable.WithTransformer(encrypter.Work())).Table("outbox")
		rows := make([]storetable.Row, many)
		for i := range rows {
			rows[i] = storetable.Row{Key: fmt.Sprintf("%06d", i), Value: bytes.Repeat([]byte("x"), 1000)}
		}
		b.Run(fmt.Sprintf("put=%d", storetable.MaxAtomicRows), func(b *testing.B) {
			for i := range b.N {
				from := i * storetable.MaxAtomicRows % many
				if err := table.Put(b.Context(), rows[from:from+storetable.MaxAtomicRows]...); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := table.Put(b.Context(), rows...); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("scan=%d", many), func(b *testing.B) {
			for range b.N {
				seen := 0
				for _, err := range table.Scan(b.Context(), "") {
					if err != nil {
						b.Fatal(err)
					}
					seen++
				}
				if seen != many {
					b.Fatalf("%d rows", seen)
				}
			}
		})
	})
}
