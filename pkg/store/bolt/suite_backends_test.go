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

// backend makes what upstream's store stands on, fresh for a test. progress is how often a watch is told how far it
// has come, 0 the default.
type backend func(t testing.TB, progress time.Duration) (*kubernetes.Client, etcd3.Compactor)

// backends are all that the suite runs on.
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
	config.TickMs, config.ElectionMs = 10, 100 // it elects itself sooner
	if progress > 0 {
		config.WatchProgressNotifyInterval = progress
	}
	client := testserver.RunEtcd(t, config)
	t.Cleanup(func() { _ = client.Close() }) // It ends with the context of the test, or here.
	etcdfeature.DefaultFeatureSupportChecker.CheckClient(t.Context(), client, storage.RequestWatchProgress)
	return client, newCompactor(t, client.Endpoints())
}

// newCompactor follows the compactions of an etcd and makes none. It has a connection of its own: the suite counts the
// reads of the store's.
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
