// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3/kubernetes"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// onFile returns an engine on a file that may have content. It has no periodic compaction.
func onFile(path string) backend {
	return func(t testing.TB, _ time.Duration) (*kubernetes.Client, etcd3.Compactor) {
		t.Helper()
		e, err := bolt.Open(t.Context(), path, bolt.Options{CompactionInterval: -1}.WithoutSync())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeEngine(t, e) })
		return bolt.NewClient(t.Context(), e), e
	}
}

// createPods creates pods and returns their resource versions.
func createPods(t *testing.T, store storage.Interface, prefix string, n int) (versions []string) {
	t.Helper()
	for i := range n {
		pod := &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("%s-%04d", prefix, i)}}
		out := &example.Pod{}
		if err := store.Create(t.Context(), "/pods/ns/"+pod.Name, pod, out, 0); err != nil {
			t.Fatal(err)
		}
		versions = append(versions, out.ResourceVersion)
	}
	return versions
}

// watchFrom starts a watch at a resource version.
func watchFrom(t *testing.T, store storage.Interface, resourceVersion string) watch.Interface {
	t.Helper()
	w, err := store.Watch(t.Context(), "/pods/", storage.ListOptions{
		ResourceVersion: resourceVersion, Predicate: storage.Everything, Recursive: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// expectResumed fails unless a watch sends pods of these resource versions in order.
func expectResumed(t *testing.T, w watch.Interface, versions []string) {
	t.Helper()
	for _, want := range versions {
		select {
		case event := <-w.ResultChan():
			object := event.Object
			if cached, ok := object.(runtime.CacheableObject); ok {
				object = cached.GetObject()
			}
			pod, ok := object.(*example.Pod)
			if !ok || event.Type != watch.Added || pod.ResourceVersion != want {
				t.Fatalf("got %s %v, want version %s", event.Type, event.Object, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("watch did not send version %s", want)
		}
	}
}

// expectExpired fails unless a watch fails as expired.
func expectExpired(t *testing.T, w watch.Interface) {
	t.Helper()
	select {
	case event := <-w.ResultChan():
		if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			t.Fatalf("got %s %v, want 410", event.Type, event.Object)
		}
	case <-time.After(time.Minute):
		t.Fatal("watch sent no event")
	}
}

// TestWatchResumesAfterRestart reopens a file, as a restarted server does. Clients must resume from the history in the
// file, although the watch cache is new, and must receive later changes.
func TestWatchResumesAfterRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	var versions []string
	t.Run("before", func(t *testing.T) {
		versions = createPods(t, onFile(path).newCache(t, cacheOptions{}), "before", 20)
	})
	f := onFile(path).newCache(t, cacheOptions{})
	oldest, last := watchFrom(t, f, versions[0]), watchFrom(t, f, versions[len(versions)-1])
	expectResumed(t, oldest, versions[1:])
	after := createPods(t, f, "after", 5)
	expectResumed(t, oldest, after)
	expectResumed(t, last, after)
	expectResumed(t, watchFrom(t, f, after[0]), after[1:])
}

// TestWatchFromCompactedRevisionExpires checks that a watch from a compacted revision expires, even after a restart, so that
// a client never misses changes.
func TestWatchFromCompactedRevisionExpires(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	var versions []string
	t.Run("before", func(t *testing.T) {
		client, compactor := onFile(path)(t, 0)
		b := backend(func(testing.TB, time.Duration) (*kubernetes.Client, etcd3.Compactor) { return client, compactor })
		versions = createPods(t, b.newCache(t, cacheOptions{}), "before", 20)
		revision, err := storage.APIObjectVersioner{}.ParseResourceVersion(versions[10])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := compactor.(*bolt.Engine).Compact(t.Context(), &pb.CompactionRequest{Revision: int64(revision)}); err != nil {
			t.Fatal(err)
		}
	})
	f := onFile(path).newCache(t, cacheOptions{})
	expectExpired(t, watchFrom(t, f, versions[0]))
	expectExpired(t, watchFrom(t, f, versions[8]))
	expectResumed(t, watchFrom(t, f, versions[10]), versions[11:])
}

// TestWatchWithUnreadyCache resumes a watch while the cache cannot be initialized.
func TestWatchWithUnreadyCache(t *testing.T) {
	store := onEngine.newStore(t, fixtureOptions{prefix: "/registry"})
	versions := createPods(t, store, "pod", 3)
	watchCache, err := cacher.NewCacherFromConfig(cacheOptions{}.config(&storeFixture{
		Interface: unlistable{store.Interface}, codec: store.codec,
	}))
	if err != nil {
		t.Fatal(err)
	}
	delegator := cacher.NewCacheDelegator(watchCache, store.Interface)
	t.Cleanup(func() {
		delegator.Stop()
		watchCache.Stop()
	})
	resumable := bolt.NewResumable(delegator, store.Interface, store.revision)
	if resumable.ReadinessCheck() == nil {
		t.Fatal("cache is ready")
	}
	expectResumed(t, watchFrom(t, resumable, versions[0]), versions[1:])
}

// unlistable makes the initialization of a cache fail.
type unlistable struct{ storage.Interface }

func (unlistable) GetList(context.Context, string, storage.ListOptions, runtime.Object) error {
	return errors.New("no list")
}

func (unlistable) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	return nil, errors.New("no watch")
}

// TestWatchResumesAfterFiveMinutes changes objects twice a second for five minutes. With upstream's default window the
// cache has then dropped the first changes; with the window that the server sets it has not.
func TestWatchResumesAfterFiveMinutes(t *testing.T) {
	const away = 4*time.Minute + 59*time.Second
	for name, c := range map[string]struct {
		window time.Duration
		expect func(*testing.T, watch.Interface, []string)
	}{
		"upstream's window": {
			storagebackend.DefaultEventsHistoryWindow, func(t *testing.T, w watch.Interface, _ []string) { expectExpired(t, w) },
		},
		"the server's": {bolt.DefaultCompactionInterval, expectResumed},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := testingclock.NewFakePassiveClock(time.Now())
			f := onEngine.newCache(t, cacheOptions{window: c.window, clock: recordingClock{pollingClock{}, recorded}})
			versions := createPods(t, f, "first", 1)
			watchFrom(t, f, versions[0]).Stop() // The cache is initialized from this version on.
			const changes = 600
			for i := range changes {
				recorded.SetTime(recorded.Now().Add(away / changes))
				version := createPods(t, f, fmt.Sprintf("later-%04d", i), 1)[0]
				versions = append(versions, version)
				// The cache records the time at which it receives a change.
				if err := f.Get(t.Context(), "/pods/ns/first-0000", storage.GetOptions{ResourceVersion: version}, newPod()); err != nil {
					t.Fatal(err)
				}
			}
			c.expect(t, watchFrom(t, f, versions[0]), versions[1:])
		})
	}
}

// unstamped makes the cache record the time at which it receives a change, instead of the store's real time.
type unstamped struct{ storage.Interface }

func (u unstamped) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	opts.RecordTimestamps = false
	return u.Interface.Watch(ctx, key, opts)
}

// recordingClock returns the time that is recorded for changes. Its timers use another clock.
type recordingClock struct {
	clock.WithTicker
	now clock.PassiveClock
}

func (c recordingClock) Now() time.Time                  { return c.now.Now() }
func (c recordingClock) Since(t time.Time) time.Duration { return c.now.Since(t) }
