// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage/etcd3/testserver"
	"k8s.io/utils/clock"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	attributionfacts "github.com/configbutler/slipstream/pkg/attribution/facts"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
)

const prefix = "/registry-work"

// onBothStores runs a test with bbolt and with etcd.
func onBothStores(t *testing.T, test func(*testing.T, *clientv3.Client)) {
	t.Helper()
	t.Run("bbolt", func(t *testing.T) { test(t, bolttest.NewClient(t)) })
	t.Run("etcd", func(t *testing.T) { test(t, newEtcd(t)) })
}

func newEtcd(t testing.TB) *clientv3.Client {
	t.Helper()
	config := testserver.NewTestConfig(t)
	config.UnsafeNoFsync = false
	client := testserver.RunEtcd(t, config)
	t.Cleanup(func() {
		if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return client.Client
}

// newLog returns the log of another replica.
func newLog(client *clientv3.Client) *attributionfacts.Log {
	return newLogAt(client, clock.RealClock{})
}

func newLogAt(client *clientv3.Client, at clock.WithTicker) *attributionfacts.Log {
	return attributionfacts.New(storetable.New(client.KV, prefix, storetable.WithWatcher(client.Watcher)), at)
}

// table returns the table in which logs store their rows.
func table(client *clientv3.Client) *storetable.Table {
	return storetable.New(client.KV, prefix).Table("facts")
}

// start runs work in the background until the test ends or stop is called.
func start(t testing.TB, work func(context.Context)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		work(ctx)
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// follower records the facts that it receives.
type follower struct {
	mu sync.Mutex
	// recovered and received are the number of times that each fact was received, by ID: as part of a list, or as new.
	recovered, received map[string]int
	last                []attribution.Fact
	// calls is the number of calls, lists that of calls with a list of all facts.
	calls, lists int
	stop         func()
}

func follow(t testing.TB, log *attributionfacts.Log) *follower {
	t.Helper()
	f := &follower{recovered: map[string]int{}, received: map[string]int{}}
	f.stop = start(t, func(ctx context.Context) { log.Follow(ctx, f.record) })
	testkit.EventuallyTrue(t, "the first list", func() bool { return f.count().lists > 0 })
	return f
}

func (f *follower) record(facts []attribution.Fact, recovered bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.received
	if recovered {
		of = f.recovered
		f.lists++
	}
	f.calls++
	for _, fact := range facts {
		of[fact.ID]++
	}
	f.last = facts
}

// timesReceived returns how often a fact was received as new.
func (f *follower) timesReceived(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.received[id]
}

type counts struct{ recovered, received, calls, lists int }

func (f *follower) count() counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return counts{len(f.recovered), len(f.received), f.calls, f.lists}
}

// newFact returns the fact of an update of an object.
func newFact(namespace string, number int) attribution.Fact {
	return attribution.Fact{
		ID: fmt.Sprintf("%s/%d", namespace, number), Signal: attribution.Audit, Operation: v1alpha1.OperationUpdate,
		Group: "apps", Resource: "deployments", Namespace: namespace, Name: fmt.Sprintf("frontend-%d", number),
		UID: types.UID(fmt.Sprintf("0d9a3c1e-6c1c-4e0c-9d55-%012d", number)), After: fmt.Sprint(100_000 + number),
		Begun: time.Now().UTC(), Ended: time.Now().UTC(),
		Actor: attribution.Actor{
			Username: fmt.Sprintf("user-%d", number%20), Email: fmt.Sprintf("user-%d@example.com", number%20),
			Groups: []string{"team-" + namespace, "developers", "system:authenticated"},
		},
	}
}

func newFacts(namespace string, n int) []attribution.Fact {
	facts := make([]attribution.Fact, n)
	for i := range facts {
		facts[i] = newFact(namespace, i)
	}
	return facts
}

// deletionOf returns a lasting fact.
func deletionOf(namespace string, uid types.UID, begun time.Time) attribution.Fact {
	fact := newFact(namespace, 0)
	fact.ID, fact.UID, fact.Operation, fact.Lasting, fact.Begun = "delete/"+string(uid), uid, v1alpha1.OperationDelete, true, begun
	return fact
}

// keys returns the keys of the stored rows that begin with a prefix.
func keys(t testing.TB, client *clientv3.Client, prefix string) (found []string) {
	t.Helper()
	for row, err := range table(client).Scan(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, row.Key)
	}
	return found
}

// count returns the number of stored rows that begin with a prefix.
func count(t testing.TB, client *clientv3.Client, prefix string) int {
	t.Helper()
	n, err := table(client).Count(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// faultyKV is a store whose operations fail or hang on demand.
type faultyKV struct {
	clientv3.KV
	mu sync.Mutex
	// failure is the error of transactions and reads, nil for success.
	failure error
	// hangs makes transactions block until their context is done.
	hangs        bool
	transactions int
}

var errStore = errors.New("the store fails")

// newFaultyKV has the operations of a client fail with an error until it is set to nil.
func newFaultyKV(client *clientv3.Client, failure error) *faultyKV {
	s := &faultyKV{failure: failure}
	s.KV = bolttest.WithWrites(client.KV, s.write)
	client.KV = s
	return s
}

func (s *faultyKV) set(failure error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = failure
}

func (s *faultyKV) attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transactions
}

func (s *faultyKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	s.mu.Lock()
	failure := s.failure
	s.mu.Unlock()
	if failure != nil {
		return nil, failure
	}
	return s.KV.Get(ctx, key, options...)
}

func (s *faultyKV) write(ctx context.Context, write bolttest.Write) error {
	s.mu.Lock()
	s.transactions++
	failure, hangs := s.failure, s.hangs
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if failure != nil {
		return failure
	}
	return write.Commit()
}
