// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/testkit"
)

// storedPrefix is the prefix that the suite's transformer adds to stored values.
const storedPrefix = "test!"

var (
	podResource = schema.GroupResource{Resource: "pods"}
	podCodecs   = newPodCodecs()
)

func newPodCodecs() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme)
}

func newPodCodec() runtime.Codec {
	return apitesting.TestCodec(podCodecs, examplev1.SchemeGroupVersion)
}

func newPod() runtime.Object     { return &example.Pod{} }
func newPodList() runtime.Object { return &example.PodList{} }

// openEngine opens an engine in a temporary directory. It is closed at the end of the test.
func openEngine(t testing.TB, options bolt.Options) *bolt.Engine {
	t.Helper()
	e, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), options.WithoutSync())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// storeFixture is upstream's store on a backend, with the recorders that the suite reads.
type storeFixture struct {
	storage.Interface
	client      *kubernetes.Client
	codec       *breakableCodec
	transformer *replaceableTransformer
	kv          *storagetesting.KVRecorder
	lists       *storagetesting.KubernetesRecorder
}

// fixtureOptions are the options that differ between tests of the suite.
type fixtureOptions struct {
	// progress is the interval of progress notifications, 0 the backend's default.
	progress    time.Duration
	prefix      string
	transformer value.Transformer
}

func (b backend) newStore(t testing.TB, o fixtureOptions) *storeFixture {
	t.Helper()
	client, compactor := b(t, o.progress)
	if o.transformer == nil {
		o.transformer = storagetesting.NewPrefixTransformer([]byte(storedPrefix), false)
	}
	f := &storeFixture{
		client:      client,
		codec:       &breakableCodec{Codec: newPodCodec()},
		transformer: newReplaceableTransformer(o.transformer),
	}
	f.lists = storagetesting.NewKubernetesRecorder(client.Kubernetes)
	f.kv = storagetesting.NewKVRecorder(client.KV, f.lists)
	client.KV, client.Kubernetes = f.kv, f.lists

	leases := etcd3.NewDefaultLeaseManagerConfig()
	leases.ReuseDurationSeconds = 1
	versioner := storage.APIObjectVersioner{}
	store, err := etcd3.New(client, compactor, f.codec, newPod, newPodList, o.prefix, "/pods/", podResource,
		f.transformer, leases, etcd3.NewDefaultDecoder(f.codec, versioner), versioner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	f.Interface = store
	return f
}

// revision returns the revision of the store, 0 if unknown.
func (f *storeFixture) revision() int64 {
	revision, err := f.GetCurrentResourceVersion(context.Background())
	if err != nil {
		return 0
	}
	return int64(revision)
}

// increaseRevision increases the revision of the store by a write, as the suite requires.
func (f *storeFixture) increaseRevision(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	response, err := f.client.KV.Put(ctx, "increaseRV", "ok")
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

// compact is upstream's compaction. It retries once, because the first call fails if it finds an unexpected logical time.
// The store of an etcd observes compactions on a watch, which the feature gate enables.
func (f *storeFixture) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	revision, err := storage.APIObjectVersioner{}.ParseResourceVersion(resourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	time, _, _, err := etcd3.Compact(ctx, f.client.Client, 0, int64(revision))
	if err != nil {
		_, _, _, err = etcd3.Compact(ctx, f.client.Client, time, int64(revision))
	}
	if err != nil {
		t.Fatal(err)
	}
	if gateEnabled(features.ListFromCacheSnapshot) {
		testkit.EventuallyTrue(t, "the store observes the compaction", func() bool { return f.CompactRevision() == int64(revision) })
	}
}

// checkStored fails if a stored object contains its resource version, which the store keeps separately.
func (f *storeFixture) checkStored(ctx context.Context, t *testing.T, key string) {
	t.Helper()
	response, err := f.client.KV.Get(ctx, key)
	if err != nil || len(response.Kvs) != 1 {
		t.Fatalf("getting %s: %d keys, error %v", key, len(response.Kvs), err)
	}
	decoded, err := runtime.Decode(f.codec, response.Kvs[0].Value[len(storedPrefix):])
	if err != nil {
		t.Fatal(err)
	}
	if pod := decoded.(*example.Pod); pod.ResourceVersion != "" {
		t.Errorf("stored object has resource version %q", pod.ResourceVersion)
	}
}

// checkCalls fails if a list took more reads than upstream's store needs for its growing pages.
func (f *storeFixture) checkCalls(t *testing.T, pageSize, objects uint64) {
	t.Helper()
	transformer := f.transformer.current().(*storagetesting.PrefixTransformer)
	if reads := transformer.GetReadsAndReset(); reads != objects {
		t.Errorf("transformer read %d objects, want %d", reads, objects)
	}
	const largestPage = 10000
	want := uint64(1)
	if pageSize != 0 {
		for read := uint64(1); read < objects; want++ {
			pageSize = min(2*pageSize, largestPage)
			read += pageSize
		}
	}
	if reads := f.kv.GetReadsAndReset() + f.kv.GetStreamReadsAndReset(); reads != want {
		t.Errorf("list took %d reads, want %d", reads, want)
	}
}

func (f *storeFixture) storedKeys(ctx context.Context) (keys []string, err error) {
	response, err := f.client.KV.Get(ctx, "/pods/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	for _, kv := range response.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys, nil
}

// prefixed implements the suite's interface to change the prefix transformer.
type prefixed struct{ *storeFixture }

func (p prefixed) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	original := p.transformer.current().(*storagetesting.PrefixTransformer)
	changed := *original
	return p.transformer.replace(modify(&changed))
}

// overridable implements the suite's interface to change the transformer of a store that wraps the fixture's.
type overridable struct {
	storage.Interface
	transformer *replaceableTransformer
}

func (o overridable) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	return o.transformer.replace(modify(o.transformer.current()))
}

// replaceableTransformer can be replaced while a store uses it.
type replaceableTransformer struct {
	transformer atomic.Pointer[value.Transformer]
}

func newReplaceableTransformer(initial value.Transformer) *replaceableTransformer {
	r := &replaceableTransformer{}
	r.transformer.Store(&initial)
	return r
}

func (r *replaceableTransformer) current() value.Transformer { return *r.transformer.Load() }

// replace sets the transformer and returns a function that restores the previous one.
func (r *replaceableTransformer) replace(with value.Transformer) func() {
	original := r.transformer.Swap(&with)
	return func() { r.transformer.Store(original) }
}

func (r *replaceableTransformer) TransformFromStorage(ctx context.Context, data []byte, of value.Context) ([]byte, bool, error) {
	return r.current().TransformFromStorage(ctx, data, of)
}

func (r *replaceableTransformer) TransformToStorage(ctx context.Context, data []byte, of value.Context) ([]byte, error) {
	return r.current().TransformToStorage(ctx, data, of)
}

var errSynthetic = errors.New("synthetic error")

// breakableCodec fails to decode on demand.
type breakableCodec struct {
	runtime.Codec
	broken atomic.Bool
}

func (c *breakableCodec) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if c.broken.Load() {
		return nil, nil, errSynthetic
	}
	return c.Codec.Decode(data, defaults, into)
}

// breakableTransformer fails to read on demand.
type breakableTransformer struct {
	value.Transformer
	broken atomic.Bool
}

func (b *breakableTransformer) TransformFromStorage(ctx context.Context, data []byte, of value.Context) ([]byte, bool, error) {
	if b.broken.Load() {
		return nil, false, errSynthetic
	}
	return b.Transformer.TransformFromStorage(ctx, data, of)
}

// corruptObjectError returns the error that upstream's store returns for an object that it cannot read. Its type is not
// exported.
func corruptObjectError() error {
	broken := &breakableTransformer{}
	broken.broken.Store(true)
	_, _, err := etcd3.WithCorruptObjErrorHandlingTransformer(broken).TransformFromStorage(context.Background(), nil, nil)
	return err
}

func setGate(t *testing.T, feature featuregate.Feature, enabled bool) {
	t.Helper()
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, feature, enabled)
}

func gateEnabled(feature featuregate.Feature) bool {
	return utilfeature.DefaultFeatureGate.Enabled(feature)
}
