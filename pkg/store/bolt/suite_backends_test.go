// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/etcd3/testserver"
	etcdfeature "k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// backend creates a fresh backend of upstream's store for a test. progress is the interval of progress notifications, 0 the
// default.
type backend func(t testing.TB, progress time.Duration) (*kubernetes.Client, etcd3.Compactor)

// backends are the engine, and etcd for comparison.
var backends = map[string]backend{"engine": onEngine, "etcd": onEtcd}

var onEngine backend = func(t testing.TB, progress time.Duration) (*kubernetes.Client, etcd3.Compactor) {
	t.Helper()
	e := openEngine(t, bolt.Options{ProgressInterval: progress})
	return bolt.NewClient(t.Context(), e), e
}

// onEtcd starts etcd within the test, as upstream's own tests do.
var onEtcd backend = func(t testing.TB, progress time.Duration) (*kubernetes.Client, etcd3.Compactor) {
	t.Helper()
	config := testserver.NewTestConfig(t)
	config.TickMs, config.ElectionMs = 10, 100 // shorten the leader election
	if progress > 0 {
		config.WatchProgressNotifyInterval = progress
	}
	client := testserver.RunEtcd(t, config)
	t.Cleanup(func() { _ = client.Close() }) // The server stops with the context of the test.
	etcdfeature.DefaultFeatureSupportChecker.CheckClient(t.Context(), client, storage.RequestWatchProgress)
	return client, newCompactor(t, client.Endpoints())
}

// newCompactor returns a compactor that follows the compactions of an etcd and makes none. It has its own connection,
// because the suite counts the reads on the store's.
func newCompactor(t testing.TB, endpoints []string) etcd3.Compactor {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
	if err != nil {
		t.Fatal(err)
	}
	compactor := etcd3.NewCompactor(client, 0, clock.RealClock{}, nil)
	t.Cleanup(func() {
		compactor.Stop()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return compactor
}
