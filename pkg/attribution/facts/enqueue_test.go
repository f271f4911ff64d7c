// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"sync"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/test/testkit"
)

const maxQueued = 10_000

// TestLargestNamespaceIsEvictedFirst enqueues more facts than the queue holds while the store fails.
func TestLargestNamespaceIsEvictedFirst(t *testing.T) {
	client := bolttest.NewClient(t)
	faulty := newFaultyKV(client, errStore)
	log := newLog(client)
	stop := start(t, log.Run)
	before := metrictest.Values(t)["kv_evictions_total"]
	quiet := newFacts("quiet", 100)
	log.Enqueue(quiet...)
	testkit.EventuallyTrue(t, "an attempt", func() bool { return faulty.attempts() > 0 })
	noisy := newFacts("noisy", maxQueued+500)
	log.Enqueue(noisy...)
	attempts := faulty.attempts()
	testkit.EventuallyTrue(t, "an attempt with the full queue", func() bool { return faulty.attempts() > attempts+1 })
	faulty.set(nil)
	testkit.EventuallyTrue(t, "the facts to be written", func() bool { return count(t, client, "recent/") > 0 })
	stop()
	f := follow(t, newLog(client))
	if got := f.count().recovered; got != maxQueued {
		t.Errorf("%d facts were written", got)
	}
	for _, fact := range append(quiet, noisy[600:]...) {
		if f.recovered[fact.ID] == 0 {
			t.Fatalf("%s is missing", fact.ID)
		}
	}
	if got := metrictest.Values(t)["kv_evictions_total"] - before; got != 600 {
		t.Errorf("kv_evictions_total increased by %v, want 600", got)
	}
}

// TestEnqueuedFactsShareTransactions enqueues from many goroutines for a while.
func TestEnqueuedFactsShareTransactions(t *testing.T) {
	const callers, each = 20, 50
	client := bolttest.NewClient(t)
	faulty := newFaultyKV(client, nil)
	log := newLog(client)
	start(t, log.Run)
	f := follow(t, newLog(client))
	began := time.Now()
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for i := range each {
				log.Enqueue(newFact("a", c*each+i))
			}
		})
	}
	group.Wait()
	testkit.EventuallyTrue(t, "the facts", func() bool { return f.count().received == callers*each })
	if most := int(time.Since(began)/(10*time.Millisecond)) + 1; faulty.attempts() > most {
		t.Errorf("%d transactions in %v", faulty.attempts(), time.Since(began))
	}
}

func TestRunWritesQueuedFactsBeforeReturn(t *testing.T) {
	client := bolttest.NewClient(t)
	for round := range 20 {
		log := newLog(client)
		stop := start(t, log.Run)
		log.Enqueue(newFacts("first", 1)...)
		log.Enqueue(newFacts("rest", 5)...)
		stop()
		f := follow(t, newLog(client))
		if got := f.count().recovered; got != 6 {
			t.Fatalf("round %d: %d facts were written", round, got)
		}
		if err := table(client).DeleteRange(t.Context(), "a", "z"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRunReturnsWhileStoreHangs(t *testing.T) {
	t.Parallel()
	client := bolttest.NewClient(t)
	faulty := newFaultyKV(client, nil)
	faulty.hangs = true
	log := newLog(client)
	stop := start(t, log.Run)
	log.Enqueue(newFacts("a", 5)...)
	testkit.EventuallyTrue(t, "an attempt", func() bool { return faulty.attempts() > 0 })
	ended := make(chan struct{})
	go func() { defer close(ended); stop() }()
	select {
	case <-ended:
	case <-time.After(testkit.Timeout):
		t.Error("Run did not return while the store hangs")
	}
}
