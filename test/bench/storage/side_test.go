// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/client/v3/kubernetes"

	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/etcd3/testserver"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// workDisk is an ignored folder of the repository, because temporary folders of the system may be in memory.
const workDisk = "../../../bin"

// objectBytes is the approximate size of an object.
const objectBytes = 1 << 10

// side is one of the two compared sides: the store of k8s.io/apiserver on the engine or on etcd.
type side struct {
	storage.Interface
	name string
}

// newSides starts both sides without objects.
func newSides(b *testing.B) []*side {
	b.Helper()
	return []*side{newBolt(b), newEtcd(b)}
}

func newBolt(b *testing.B) *side {
	b.Helper()
	e, err := bolt.Open(b.Context(), filepath.Join(folder(b), "store.db"), bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	return newSide(b, "bolt", bolt.NewClient(b.Context(), e), e)
}

func newEtcd(b *testing.B) *side {
	b.Helper()
	config := testserver.NewTestConfig(b)
	config.Dir, config.UnsafeNoFsync = folder(b), false
	client := testserver.RunEtcd(b, config)
	compactor := etcd3.NewCompactor(client.Client, bolt.DefaultCompactionInterval, clock.RealClock{}, nil)
	b.Cleanup(func() {
		compactor.Stop()
		_ = client.Close() // It may have been closed with the context of the benchmark.
	})
	return newSide(b, "etcd", client, compactor)
}

// folder returns a new folder on the work disk, which is removed after the benchmark.
func folder(b *testing.B) string {
	b.Helper()
	if err := os.MkdirAll(workDisk, 0o755); err != nil {
		b.Fatal(err)
	}
	made, err := os.MkdirTemp(workDisk, "bench-storage-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(made) })
	return made
}

func newSide(b *testing.B, name string, client *kubernetes.Client, compactor etcd3.Compactor) *side {
	b.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
	codec := apitesting.TestCodec(serializer.NewCodecFactory(scheme), examplev1.SchemeGroupVersion)
	versioner := storage.APIObjectVersioner{}
	store, err := etcd3.New(client, compactor, codec,
		func() runtime.Object { return &example.Pod{} }, func() runtime.Object { return &example.PodList{} },
		"/registry", "/pods/", schema.GroupResource{Resource: "pods"}, identity.NewEncryptCheckTransformer(),
		etcd3.NewDefaultLeaseManagerConfig(), etcd3.NewDefaultDecoder(codec, versioner), versioner)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	return &side{Interface: store, name: name}
}

// key returns the key of an object. One benchmark creates all objects of a folder.
func key(folder string, n int) string { return fmt.Sprintf("/pods/%s/pod-%07d", folder, n) }

// newPod returns the object of a key.
func newPod(folder string, n int) *example.Pod {
	return &example.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: folder, Name: fmt.Sprintf("pod-%07d", n),
		Annotations: map[string]string{"content": strings.Repeat("x", objectBytes)},
	}}
}
