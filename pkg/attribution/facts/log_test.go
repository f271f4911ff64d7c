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
)

func TestFactsReachWhoFollows(t *testing.T) {
	onBoth(t, func(t *testing.T, client *clientv3.Client) {
		leader, other := newLog(client), newLog(client)
		before := append(newFacts("before", 700), deletionOf("before", "u1", time.Now().UTC()))
		if err := other.Record(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		f := follow(t, leader)
		sorted := cmpopts.SortSlices(func(a, b attribution.Fact) bool { return a.ID < b.ID })
		if diff := cmp.Diff(before, f.last, sorted); diff != "" {
			t.Errorf("recovered facts differ (-recorded +told):\n%s", diff)
		}
		if got := f.count(); got.calls != 1 {
			t.Errorf("%d calls for what was there", got.calls)
		}
		start(t, other.Run)
		if err := leader.Record(t.Context(), newFacts("recorded", 2)); err != nil {
			t.Fatal(err)
		}
		other.Enqueue(newFacts("enqueued", 3)...)
		eventually(t, "new facts", func() bool { return f.count().told == 5 })
		if got := f.count(); got.recovered != len(before) || got.lists != 1 {
			t.Errorf("after new facts: %+v", got)
		}
	})
}

// TestFactsReachAllWhoFollow has a second follower come later.
func TestFactsReachAllWhoFollow(t *testing.T) {
	onBoth(t, func(t *testing.T, client *clientv3.Client) {
		log := newLog(client)
		first := follow(t, log)
		if err := log.Record(t.Context(), newFacts("before", 3)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the first facts", func() bool { return first.count().told == 3 })
		second := follow(t, log)
		if err := log.Record(t.Context(), newFacts("after", 2)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the facts that both are told", func() bool { return first.count().told == 5 && second.count().told == 2 })
		if got := second.count(); got.recovered != 3 || got.lists != 1 {
			t.Errorf("the second was told %+v", got)
		}
		if got := first.count(); got.lists != 1 {
			t.Errorf("the first was told %+v", got)
		}
	})
}

func TestFollowBeginsWithNothing(t *testing.T) {
	client := bolttest.NewClient(t)
	f := follow(t, newLog(client))
	if got := f.count(); got != (counts{calls: 1, lists: 1}) {
		t.Errorf("an empty log was told as %+v", got)
	}
}

// TestRecordedIsOnDisk opens the store again after Record, as a process does that was killed.
func TestRecordedIsOnDisk(t *testing.T) {
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

func TestRecordSaysThatTheStoreFails(t *testing.T) {
	client := bolttest.NewClient(t)
	shaky := &shakyKV{KV: client.KV, failure: errStore}
	client.KV = shaky
	if err := newLog(client).Record(t.Context(), newFacts("a", 1)); err == nil {
		t.Error("facts are said to be recorded by a store that fails")
	}
	if err := newLog(client).Record(t.Context(), nil); err != nil || shaky.tried() != 1 {
		t.Errorf("nothing to record: %v after %d transactions", err, shaky.tried())
	}
}

// TestReplicasDoNotOverwriteEachOther records at one moment of one clock.
func TestReplicasDoNotOverwriteEachOther(t *testing.T) {
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
		t.Errorf("%d facts of %d are there", f.count().recovered, replicas*each)
	}
}

func TestFactTooLargeIsLeftOut(t *testing.T) {
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
		t.Errorf("%d facts are there", got)
	}
}

func TestRowsThatCannotBeReadAreCounted(t *testing.T) {
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
	eventually(t, "facts after a row that cannot be read", func() bool { return f.count().told == 2 })
	if got := metrictest.Values(t)["facts_unreadable_total"] - before; f.count().recovered != 2 || got != 3 {
		t.Errorf("%+v, and %v rows could not be read", f.count(), got)
	}
}

// TestFollowOutlivesAStoreThatFails begins with a store that cannot be read.
func TestFollowOutlivesAStoreThatFails(t *testing.T) {
	client := bolttest.NewClient(t)
	if err := newLog(client).Record(t.Context(), newFacts("a", 2)); err != nil {
		t.Fatal(err)
	}
	shaky := &shakyKV{KV: client.KV, failure: errStore}
	client.KV = shaky
	log, called := newLog(client), make(chan int, 1)
	start(t, func(ctx context.Context) {
		log.Follow(ctx, func(facts []attribution.Fact, _ bool) { called <- len(facts) })
	})
	select {
	case <-called:
		t.Fatal("told of a store that cannot be read")
	case <-time.After(50 * time.Millisecond):
	}
	shaky.set(nil)
	select {
	case n := <-called:
		if n != 2 {
			t.Errorf("told %d facts at first", n)
		}
	case <-time.After(patience):
		t.Error("nothing was told once the store could be read")
	}
}

// TestFollowListsAgain compacts what a leader that is busy has yet to be told.
func TestFollowListsAgain(t *testing.T) {
	client := bolttest.NewClient(t)
	log := newLog(client)
	busy, told := make(chan struct{}), make(chan int)
	start(t, func(ctx context.Context) {
		log.Follow(ctx, func(facts []attribution.Fact, recovered bool) {
			if !recovered {
				<-busy
				return
			}
			select {
			case told <- len(facts):
			case <-ctx.Done():
			}
		})
	})
	<-told
	for i := range 20 {
		if err := log.Record(t.Context(), []attribution.Fact{newFact("a", i)}); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := client.Get(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), answer.Header.Revision); err != nil {
		t.Fatal(err)
	}
	close(busy)
	select {
	case n := <-told:
		if n != 20 {
			t.Errorf("%d facts were listed again", n)
		}
	case <-time.After(patience):
		t.Error("what was compacted was not listed again")
	}
}
