// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/attribution"
	attributionfacts "github.com/configbutler/slipstream/pkg/attribution/facts"
	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/test/testkit"
)

// fakeClock is a clock that can jump without affecting its tickers, like the tickers of the real clock.
type fakeClock struct {
	*clocktesting.FakeClock
	ahead atomic.Int64
}

func newClock() *fakeClock {
	return &fakeClock{FakeClock: clocktesting.NewFakeClock(time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC))}
}

func (c *fakeClock) Now() time.Time { return c.FakeClock.Now().Add(time.Duration(c.ahead.Load())) }

func (c *fakeClock) jump(by time.Duration) { c.ahead.Add(int64(by)) }

// leader is the replica that leads, with its own clock.
type leader struct {
	client *clientv3.Client
	clock  *fakeClock
	log    *attributionfacts.Log
	*follower
}

func lead(t *testing.T, client *clientv3.Client) *leader {
	t.Helper()
	at := newClock()
	l := &leader{client: client, clock: at, log: newLogAt(client, at)}
	start(t, l.log.Run)
	l.follower = follow(t, l.log)
	return l
}

func (l *leader) record(t *testing.T, facts ...attribution.Fact) {
	t.Helper()
	received := l.count().calls
	if err := l.log.Record(t.Context(), facts); err != nil {
		t.Fatal(err)
	}
	testkit.EventuallyTrue(t, "recorded facts", func() bool { return l.count().calls > received })
}

// stepUntil advances the clock, one tick at a time, until the given number of rows is left, and returns by how much. After
// the last tick of the given time it waits up to testkit.Timeout: on a busy machine, rows may be removed after a later tick
// than the one that triggered it.
func (l *leader) stepUntil(t *testing.T, prefix string, rows int, within time.Duration) time.Duration {
	t.Helper()
	const tick = 10 * time.Second
	for passed := tick; ; passed += tick {
		testkit.EventuallyTrue(t, "the ticker", l.clock.HasWaiters)
		l.clock.Step(tick)
		if passed > within {
			testkit.EventuallyTrue(t, fmt.Sprintf("%d rows %s after %v", rows, prefix, passed), func() bool {
				return count(t, l.client, prefix) == rows
			})
			return passed
		}
		for deadline := time.Now().Add(100 * time.Millisecond); time.Now().Before(deadline); {
			if count(t, l.client, prefix) == rows {
				return passed
			}
		}
	}
}

func TestFactsAreKeptForAMinute(t *testing.T) {
	onBothStores(t, func(t *testing.T, client *clientv3.Client) {
		l := lead(t, client)
		l.record(t, newFacts("a", 3)...)
		if passed := l.stepUntil(t, "recent/", 0, 2*time.Minute); passed < time.Minute {
			t.Errorf("facts were removed after %v", passed)
		}
	})
}

// TestFactsAreKeptForTheNextLeader runs a replica that does not lead.
func TestFactsAreKeptForTheNextLeader(t *testing.T) {
	client := bolttest.NewClient(t)
	l := lead(t, client)
	l.stop()
	if err := l.log.Record(t.Context(), newFacts("a", 3)); err != nil {
		t.Fatal(err)
	}
	l.clock.jump(14 * time.Minute)
	if passed := l.stepUntil(t, "recent/", 0, 2*time.Minute); passed < time.Minute {
		t.Errorf("facts were removed %v early, before a replica led", time.Minute-passed)
	}
}

// TestClockJump moves the clock of a leader forward and back by a day.
func TestClockJump(t *testing.T) {
	for name, jump := range map[string]time.Duration{"ahead": 24 * time.Hour, "back": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			client := bolttest.NewClient(t)
			l := lead(t, client)
			l.record(t, newFacts("before", 3)...)
			l.clock.jump(jump)
			l.stepUntil(t, "recent/", 0, 2*time.Minute)
			l.record(t, newFacts("after", 3)...)
			if got := count(t, client, "recent/"); got != 1 {
				t.Errorf("%d rows after the jump", got)
			}
			if passed := l.stepUntil(t, "recent/", 0, 2*time.Minute); passed < time.Minute {
				t.Errorf("facts were removed %v after the jump", passed)
			}
			if got := l.count().received; got != 6 {
				t.Errorf("received %d facts", got)
			}
		})
	}
}

func TestLastingFactsArePreserved(t *testing.T) {
	onBothStores(t, func(t *testing.T, client *clientv3.Client) {
		l := lead(t, client)
		now := l.clock.Now()
		twice := deletionOf("a", "u1", now)
		l.record(t, twice, newFact("a", 1), deletionOf("a", "u2", now), deletionOf("a", "", now))
		l.record(t, twice)
		if got := keys(t, client, "lasting/"); len(got) != 2 {
			t.Fatalf("lasting rows %q", got)
		}
		l.stepUntil(t, "recent/", 0, 2*time.Minute)
		if got := keys(t, client, "lasting/"); len(got) != 2 {
			t.Fatalf("lasting rows %q after a while", got)
		}
		l.stop()
		l.follower = follow(t, l.log)
		if got := l.count().recovered; got != 2 {
			t.Errorf("recovered %d lasting facts", got)
		}
		l.log.Forget("u1", "unknown")
		l.stepUntil(t, "lasting/", 1, time.Minute)
		l.clock.jump(now.Add(7*24*time.Hour - time.Minute).Sub(l.clock.Now()))
		if passed := l.stepUntil(t, "lasting/", 0, 5*time.Minute); passed < time.Minute {
			t.Errorf("a lasting fact was removed %v early", time.Minute-passed)
		}
	})
}

// TestFactsAreRemovedWhileOneFollows stops one of two followers.
func TestFactsAreRemovedWhileOneFollows(t *testing.T) {
	client := bolttest.NewClient(t)
	l := lead(t, client)
	l.record(t, deletionOf("a", "u1", l.clock.Now()), deletionOf("a", "u2", l.clock.Now()))
	second := follow(t, l.log)
	if got := second.count().recovered; got != 2 {
		t.Errorf("the second recovered %d facts", got)
	}
	l.stop()
	if err := l.log.Record(t.Context(), newFacts("a", 3)); err != nil {
		t.Fatal(err)
	}
	testkit.EventuallyTrue(t, "new facts", func() bool { return second.count().received == 3 })
	if got := l.count().received; got != 2 {
		t.Errorf("the first received %d facts", got)
	}
	if passed := l.stepUntil(t, "recent/", 0, 2*time.Minute); passed < time.Minute {
		t.Errorf("facts were removed after %v", passed)
	}
	l.log.Forget("u1")
	l.stepUntil(t, "lasting/", 1, time.Minute)
	second.stop()
	if err := l.log.Record(t.Context(), newFacts("a", 3)); err != nil {
		t.Fatal(err)
	}
	l.clock.jump(14 * time.Minute)
	if passed := l.stepUntil(t, "recent/", 0, 2*time.Minute); passed < time.Minute {
		t.Errorf("facts that no follower received were removed after %v", passed)
	}
}

// TestFactAfterForget forgets an object before the fact of its deletion is recorded.
func TestFactAfterForget(t *testing.T) {
	client := bolttest.NewClient(t)
	l := lead(t, client)
	l.log.Forget("u1")
	l.record(t, deletionOf("a", "u1", l.clock.Now()), deletionOf("a", "u2", l.clock.Now()))
	l.stepUntil(t, "lasting/", 1, time.Minute)
	if got := l.count().received; got != 2 {
		t.Errorf("received %d facts", got)
	}
}

func TestLastingFactsAreBounded(t *testing.T) {
	const most = 10_000
	client := bolttest.NewClient(t)
	l := lead(t, client)
	before := metrictest.Values(t)["kv_evictions_total"]
	var facts []attribution.Fact
	for i := range 10 {
		facts = append(facts, deletionOf("quiet", types.UID(fmt.Sprintf("quiet-%d", i)), l.clock.Now()))
	}
	for i := range most {
		facts = append(facts, deletionOf("noisy", types.UID(fmt.Sprintf("noisy-%d", i)), l.clock.Now()))
	}
	l.record(t, facts...)
	testkit.EventuallyTrue(t, "the facts", func() bool { return l.count().received == len(facts) })
	l.stepUntil(t, "lasting/", most, time.Minute)
	if got := count(t, client, "lasting/quiet"); got != 10 {
		t.Errorf("%d facts of the quiet namespace, want 10", got)
	}
	if got := metrictest.Values(t)["kv_evictions_total"] - before; got != 10 {
		t.Errorf("kv_evictions_total increased by %v, want 10", got)
	}
}
