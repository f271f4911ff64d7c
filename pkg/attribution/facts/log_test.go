// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
)

func TestFollowerReceivesFacts(t *testing.T) {
	onBothStores(t, func(t *testing.T, client *clientv3.Client) {
		leader, other := newLog(client), newLog(client)
		before := append(newFacts("before", 700), deletionOf("before", "u1", time.Now().UTC()))
		if err := other.Record(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		f := follow(t, leader)
		sorted := cmpopts.SortSlices(func(a, b attribution.Fact) bool { return a.ID < b.ID })
		if diff := cmp.Diff(before, f.last, sorted); diff != "" {
			t.Errorf("recovered facts differ (-recorded +received):\n%s", diff)
		}
		if got := f.count(); got.calls != 1 {
			t.Errorf("%d calls for the first list", got.calls)
		}
		start(t, other.Run)
		if err := leader.Record(t.Context(), newFacts("recorded", 2)); err != nil {
			t.Fatal(err)
		}
		other.Enqueue(newFacts("enqueued", 3)...)
		testkit.EventuallyTrue(t, "new facts", func() bool { return f.count().received == 5 })
		if got := f.count(); got.recovered != len(before) || got.lists != 1 {
			t.Errorf("after new facts: %+v", got)
		}
	})
}

// TestAllFollowersReceiveFacts starts a second follower later.
func TestAllFollowersReceiveFacts(t *testing.T) {
	onBothStores(t, func(t *testing.T, client *clientv3.Client) {
		log := newLog(client)
		first := follow(t, log)
		if err := log.Record(t.Context(), newFacts("before", 3)); err != nil {
			t.Fatal(err)
		}
		testkit.EventuallyTrue(t, "the first facts", func() bool { return first.count().received == 3 })
		second := follow(t, log)
		if err := log.Record(t.Context(), newFacts("after", 2)); err != nil {
			t.Fatal(err)
		}
		testkit.EventuallyTrue(t, "the facts that both receive", func() bool {
			return first.count().received == 5 && second.count().received == 2
		})
		if got := second.count(); got.recovered != 3 || got.lists != 1 {
			t.Errorf("the second received %+v", got)
		}
		if got := first.count(); got.lists != 1 {
			t.Errorf("the first received %+v", got)
		}
	})
}

func TestFollowEmptyLog(t *testing.T) {
	client := bolttest.NewClient(t)
	f := follow(t, newLog(client))
	if got := f.count(); got != (counts{calls: 1, lists: 1}) {
		t.Errorf("from an empty log received %+v", got)
	}
}

// TestRecordIsDurable reopens the store after Record, as after the process was killed.
func TestRecordIsDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	for round := range 3 {
		engine, err := bolt.Open(t.Context(), path, bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		log := newLog(bolt.NewClient(t.Context(), engine).Client)
		f := follow(t, log)
		if got := f.count(); got.recovered != 5*round {
			t.Errorf("round %d: recovered %d facts", round, got.recovered)
		}
		if err := log.Record(t.Context(), newFacts(fmt.Sprint(round), 5)); err != nil {
			t.Fatal(err)
		}
		f.stop()
		if err := engine.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecordReturnsStoreError(t *testing.T) {
	client := bolttest.NewClient(t)
	faulty := newFaultyKV(client, errStore)
	if err := newLog(client).Record(t.Context(), newFacts("a", 1)); err == nil {
		t.Error("Record succeeded with a store that fails")
	}
	if err := newLog(client).Record(t.Context(), nil); err != nil || faulty.attempts() != 1 {
		t.Errorf("Record without facts: %v after %d transactions", err, faulty.attempts())
	}
}

// TestConcurrentReplicas records facts of several replicas at the same time of a shared clock.
func TestConcurrentReplicas(t *testing.T) {
	const replicas, each = 4, 25
	client, at := bolttest.NewClient(t), newClock()
	group, ctx := errgroup.WithContext(t.Context())
	for r := range replicas {
		log := newLogAt(client, at)
		group.Go(func() error {
			for i := range each {
				if err := log.Record(ctx, []attribution.Fact{newFact(fmt.Sprint(r), i)}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if f := follow(t, newLog(client)); f.count().recovered != replicas*each {
		t.Errorf("recovered %d facts of %d", f.count().recovered, replicas*each)
	}
}

func TestLargeFactIsSkipped(t *testing.T) {
	client := bolttest.NewClient(t)
	log := newLog(client)
	facts := newFacts("a", 3)
	facts[1].Actor.Groups = []string{strings.Repeat("x", 200<<10)}
	before := metrictest.Values(t)["kv_evictions_total"]
	if err := log.Record(t.Context(), facts); err != nil {
		t.Fatal(err)
	}
	f := follow(t, log)
	if got := f.count().recovered; got != 2 || metrictest.Values(t)["kv_evictions_total"] != before+1 {
		t.Errorf("recovered %d facts", got)
	}
}

func TestUnreadableRowsAreCounted(t *testing.T) {
	client := bolttest.NewClient(t)
	log := newLog(client)
	before := metrictest.Values(t)["facts_unreadable_total"]
	put := func(key, value string) {
		if err := table(client).Put(t.Context(), storetable.Row{Key: key, Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}
	put("recent/0000000000000001-x-1", "no facts")
	put("lasting/u/1", "")
	if err := log.Record(t.Context(), newFacts("a", 2)); err != nil {
		t.Fatal(err)
	}
	f := follow(t, log)
	put("recent/0000000000000001-x-2", "k8s:enc:aesgcm:v1:lost:xxxx")
	if err := log.Record(t.Context(), newFacts("b", 2)); err != nil {
		t.Fatal(err)
	}
	testkit.EventuallyTrue(t, "facts after an unreadable row", func() bool { return f.count().received == 2 })
	if got := metrictest.Values(t)["facts_unreadable_total"] - before; f.count().recovered != 2 || got != 3 {
		t.Errorf("%+v, and %v unreadable rows", f.count(), got)
	}
}

// TestFollowRetriesAfterStoreFailure starts with a store that fails.
func TestFollowRetriesAfterStoreFailure(t *testing.T) {
	client := bolttest.NewClient(t)
	if err := newLog(client).Record(t.Context(), newFacts("a", 2)); err != nil {
		t.Fatal(err)
	}
	faulty := newFaultyKV(client, errStore)
	log, called := newLog(client), make(chan int, 1)
	start(t, func(ctx context.Context) {
		log.Follow(ctx, func(facts []attribution.Fact, _ bool) { called <- len(facts) })
	})
	select {
	case <-called:
		t.Fatal("received facts from a store that fails")
	case <-time.After(50 * time.Millisecond):
	}
	faulty.set(nil)
	select {
	case n := <-called:
		if n != 2 {
			t.Errorf("received %d facts", n)
		}
	case <-time.After(testkit.Timeout):
		t.Error("no facts were received after the store recovered")
	}
}

// TestFollowListsAgain compacts the store before a busy follower has received its events.
func TestFollowListsAgain(t *testing.T) {
	client := bolttest.NewClient(t)
	log := newLog(client)
	busy, received := make(chan struct{}), make(chan int)
	start(t, func(ctx context.Context) {
		log.Follow(ctx, func(facts []attribution.Fact, recovered bool) {
			if !recovered {
				<-busy
				return
			}
			select {
			case received <- len(facts):
			case <-ctx.Done():
			}
		})
	})
	<-received
	for i := range 20 {
		if err := log.Record(t.Context(), []attribution.Fact{newFact("a", i)}); err != nil {
			t.Fatal(err)
		}
	}
	response, err := client.Get(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), response.Header.Revision); err != nil {
		t.Fatal(err)
	}
	close(busy)
	select {
	case n := <-received:
		if n != 20 {
			t.Errorf("listed %d facts again", n)
		}
	case <-time.After(testkit.Timeout):
		t.Error("the follower did not list again after the compaction")
	}
}
