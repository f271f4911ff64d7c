// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/testkit"
)

// serverOn returns the configuration of a generic API server that stores its objects in e.
func serverOn(t *testing.T, e *bolt.Engine, change func(*options.EtcdOptions)) *server.Config {
	t.Helper()
	etcd := options.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", newPodCodec()))
	if change != nil {
		change(etcd)
	}
	if errs := bolt.ValidateOptions(etcd); len(errs) != 0 {
		t.Fatal(errs)
	}
	config := server.NewConfig(podCodecs)
	if err := bolt.ApplyTo(t.Context(), e, etcd, config); err != nil {
		t.Fatal(err)
	}
	return config
}

// newPodStorage returns a storage of pods, created as the generic registry creates it.
func newPodStorage(t *testing.T, getter generic.RESTOptionsGetter) storage.Interface {
	t.Helper()
	resource := schema.GroupResource{Group: "example.test", Resource: "pods"}
	opts, err := getter.GetRESTOptions(resource, &example.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	prefix := "/" + opts.ResourcePrefix
	keyFunc := func(obj runtime.Object) (string, error) { return storage.NamespaceKeyFunc(prefix+"/", obj) }
	store, destroy, err := opts.Decorator(opts.StorageConfig, prefix, keyFunc, newPod, newPodList, podAttributes, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	t.Cleanup(destroy) // Subresources share a storage and destroy it again.
	return store
}

func TestApplyTo(t *testing.T) {
	tests := map[string]struct {
		change func(*options.EtcdOptions)
		cached bool
	}{
		"watch cache":                      {nil, true},
		"no watch cache":                   {func(o *options.EtcdOptions) { o.EnableWatchCache = false }, false},
		"no watch cache of this resource":  {func(o *options.EtcdOptions) { o.WatchCacheSizes = []string{"pods.example.test#0"} }, false},
		"no watch cache of other resource": {func(o *options.EtcdOptions) { o.WatchCacheSizes = []string{"pods#0"} }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := openEngine(t, bolt.Options{})
			store := newPodStorage(t, serverOn(t, e, test.change).RESTOptionsGetter)
			if _, cached := store.(*bolt.Resumable); cached != test.cached {
				t.Errorf("storage is %T", store)
			}
			pod := &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}
			const key = "/example.test/pods/ns/pod"
			created := &example.Pod{}
			if err := store.Create(t.Context(), key, pod, created, 0); err != nil {
				t.Fatal(err)
			}
			if created.ResourceVersion != fmt.Sprint(e.Revision()) {
				t.Errorf("resource version %s at revision %d", created.ResourceVersion, e.Revision())
			}
			if got := read(t, e, "/registry/", 0); !strings.HasPrefix(got, "/registry/example.test/pods/ns/pod=") {
				t.Errorf("store holds %s", got)
			}
			checkList(t, store)
		})
	}
}

// TestBookmarksWithoutWatchCache checks that a watch of a resource without a watch cache has the version after a change of another one.
func TestBookmarksWithoutWatchCache(t *testing.T) {
	e := openEngine(t, bolt.Options{ProgressInterval: 10 * time.Millisecond})
	store := newPodStorage(t, serverOn(t, e, func(o *options.EtcdOptions) { o.EnableWatchCache = false }).RESTOptionsGetter)
	predicate := storage.Everything
	predicate.AllowWatchBookmarks = true
	watch, err := store.Watch(t.Context(), "/example.test/pods/", storage.ListOptions{
		ResourceVersion: fmt.Sprint(e.Revision()), Predicate: predicate, Recursive: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if _, err := bolt.NewClient(t.Context(), e).Put(t.Context(), "/registry/example.test/services/ns/other", "1"); err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-watch.ResultChan():
		pod, ok := event.Object.(*example.Pod)
		if event.Type != apiwatch.Bookmark || !ok || pod.ResourceVersion != fmt.Sprint(e.Revision()) {
			t.Errorf("event %s of %+v, want a bookmark of revision %d", event.Type, event.Object, e.Revision())
		}
	case <-time.After(testkit.Timeout):
		t.Error("no bookmark")
	}
}

// checkList fails unless a consistent list returns the pod. It retries, because the cache may refuse lists while it starts.
func checkList(t *testing.T, store storage.Interface) {
	t.Helper()
	list := &example.PodList{}
	testkit.EventuallyWithin(t, testkit.Timeout, "the list", func(ctx context.Context) error {
		return store.GetList(ctx, "/example.test/pods/", storage.ListOptions{Predicate: storage.Everything, Recursive: true}, list)
	})
	if len(list.Items) != 1 || list.Items[0].Name != "pod" {
		t.Errorf("list %v", list.Items)
	}
}

func TestHealthCheck(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	config := serverOn(t, e, nil)
	found := false
	for _, check := range config.HealthzChecks {
		if check.Name() != "bbolt" {
			continue
		}
		found = true
		request := httptest.NewRequestWithContext(t.Context(), "GET", "/healthz", nil)
		if err := check.Check(request); err != nil {
			t.Errorf("a running engine: %v", err)
		}
		closeEngine(t, e)
		if err := check.Check(request); err == nil {
			t.Error("health check of a closed engine passed")
		}
	}
	if !found {
		t.Error("health check of the engine is not registered")
	}
}

func TestInvalidOptions(t *testing.T) {
	etcd := options.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", nil))
	etcd.StorageConfig.Type = "bbolt"
	if errs := bolt.ValidateOptions(etcd); len(errs) != 0 {
		t.Errorf("without etcd servers: %v", errs)
	}
	etcd.DefaultStorageMediaType = "text/plain"
	if errs := bolt.ValidateOptions(etcd); len(errs) != 1 {
		t.Errorf("unsupported media type: %v", errs)
	}
	etcd.WatchCacheSizes = []string{"nonsense"}
	if err := bolt.ApplyTo(t.Context(), openEngine(t, bolt.Options{}), etcd, server.NewConfig(podCodecs)); err == nil {
		t.Error("invalid watch cache sizes were accepted")
	}
}
