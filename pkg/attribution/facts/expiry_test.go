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
)

// fakeClock is a clock that may jump, without its tickers knowing: real ones do not follow the clock.
type fakeClock struct {
	*clocktesting.FakeClock
	ahead atomic.Int64
}

func newClock() *fakeClock {
	return &fakeClock{FakeClock: clocktesting.NewFakeClock(time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC))}
}

func (c *fakeClock) Now() time.Time { return c.FakeClock.Now().Add(time.Duration(c.ahead.Load())) }

func (c *fakeClock) jump(by time.Duration) { c.ahead.Add(int64(by)) }

// leading is a replica that leads, with a clock of its own.
type leading struct {
	client *clientv3.Client
	clock  *fakeClock
	log    *attributionfacts.Log
	*follower
}

func lead(t *testing.T, client *clientv3.Client) *leading {
	t.Helper()
	at := newClock()
	l := &leading{client: client, clock: at, log: newLogAt(client, at)}
	start(t, l.log.Run)
	l.follower = follow(t, l.log)
	return l
}

func (l *leading) record(t *testing.T, facts ...attribution.Fact) {
	t.Helper()
	told := l.count().calls
	if err := l.log.Record(t.Context(), facts); err != nil {
		t.Fatal(err)
	}
	eventually(t, "recorded facts", func() bool { return l.count().calls > told })
}

// becomes advances the clock, a tick at a time, until so many rows are left, and returns how far. After the last tick of the
// given time it waits as long as a busy machine needs: on such a machine the rows may be removed after a later tick than the one
// that asked for it, but not never.
func (l *leading) becomes(t *testing.T, prefix string, rows int, within time.Duration) time.Duration {
	t.Helper()
	const tick = 10 * time.Second
	for passed := tick; ; passed += tick {
		eventually(t, "the ticker", l.clock.HasWaiters)
		l.clock.Step(tick)
		if passed > within {
			eventually(t, fmt.Sprintf("%d rows %s after %v", rows, prefix, passed), func() bool { return count(t, l.client, prefix) == rows })
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
	onBoth(t, func(t *testing.T, client *clientv3.Client) {
		l := lead(t, client)
		l.record(t, newFacts("a", 3)...)
		if passed := l.becomes(t, "recent/", 0, 2*time.Minute); passed < time.Minute {
			t.Errorf("facts were removed after %v", passed)
		}
	})
}

// TestFactsAreKeptForWhoWillLead lets a replica run that does not lead.
func TestFactsAreKeptForWhoWillLead(t *testing.T) {
	client := bolttest.NewClient(t)
	l := lead(t, client)
	l.stop()
	if err := l.log.Record(t.Context(), newFacts("a", 3)); err != nil {
		t.Fatal(err)
	}
	l.clock.jump(14 * time.Minute)
	if passed := l.becomes(t, "recent/", 0, 2*time.Minute); passed < time.Minute {
		t.Errorf("facts were removed %v early, before anybody led", time.Minute-passed)
	}
}

// TestClockThatJumps lets the clock of a leader go back and ahead by a day.
func TestClockThatJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"ahead": 24 * time.Hour, "back": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			client := bolttest.NewClient(t)
			l := lead(t, client)
			l.record(t, newFacts("before", 3)...)
			l.clock.jump(jump)
			l.becomes(t, "recent/", 0, 2*time.Minute)
			l.record(t, newFacts("after", 3)...)
			if got := count(t, client, "recent/"); got != 1 {
				t.Errorf("%d rows after the jump", got)
			}
			if passed := l.becomes(t, "recent/", 0, 2*time.Minute); passed < time.Minute {
				t.Errorf("facts were removed %v after the jump", passed)
			}
			if got := l.count().told; got != 6 {
				t.Errorf("%d facts were told", got)
			}
		})
	}
}

func TestLastingFactsStay(t *testing.T) {
	onBoth(t, func(t *testing.T, client *clientv3.Client) {
		l := lead(t, client)
		now := l.clock.Now()
		twice := deletionOf("a", "u1", now)
		l.record(t, twice, newFact("a", 1), deletionOf("a", "u2", now), deletionOf("a", "", now))
		l.record(t, twice)
		if got := keys(t, client, "lasting/"); len(got) != 2 {
			t.Fatalf("lasting rows %q", got)
		}
		l.becomes(t, "recent/", 0, 2*time.Minute)
		if got := keys(t, client, "lasting/"); len(got) != 2 {
			t.Fatalf("lasting rows %q after a while", got)
		}
		l.stop()
		l.follower = follow(t, l.log)
		if got := l.count().recovered; got != 2 {
			t.Errorf("recovered %d lasting facts", got)
		}
		l.log.Forget("u1", "never heard of")
		l.becomes(t, "lasting/", 1, time.Minute)
		l.clock.jump(now.Add(7*24*time.Hour - time.Minute).Sub(l.clock.Now()))
		if passed := l.becomes(t, "lasting/", 0, 5*time.Minute); passed < time.Minute {
			t.Errorf("a lasting fact was removed %v early", time.Minute-passed)
		}
	})
}

// TestFactsAreRemovedWhileSomebodyFollows ends one of two who follow.
func TestFactsAreRemovedWhileSomebodyFollows(t *testing.T) {
	client := bolttest.NewClient(t)
	l := lead(t, client)
	l.record(t, deletionOf("a", "u1", l.clock.Now()), deletionOf("a", "u2", l.clock.Now()))
	second := follow(t, l.log)
	if got := second.count().recovered; got != 2 {
		t.Errorf("the second was told %d facts at first", got)
	}
	l.stop()
	if err := l.log.Record(t.Context(), newFacts("a", 3)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "new facts", func() bool { return second.count().told == 3 })
	if got := l.count().told; got != 2 {
		t.Errorf("the first was told %d facts", got)
	}
	if passed := l.becomes(t, "recent/", 0, 2*time.Minute); passed < time.Minute {
		t.Errorf("facts were removed after %v", passed)
	}
	l.log.Forget("u1")
	l.becomes(t, "lasting/", 1, time.Minute)
	second.stop()
	if err := l.log.Record(t.Context(), newFacts("a", 3)); err != nil {
		t.Fatal(err)
	}
	l.clock.jump(14 * time.Minute)
	if passed := l.becomes(t, "recent/", 0, 2*time.Minute); passed < time.Minute {
		t.Errorf("facts that nobody was told of were removed after %v", passed)
	}
}

// TestFactAfterTheEndOfItsObject forgets an object before the fact of its deletion comes.
func TestFactAfterTheEndOfItsObject(t *testing.T) {
	client := bolttest.NewClient(t)
	l := lead(t, client)
	l.log.Forget("u1")
	l.record(t, deletionOf("a", "u1", l.clock.Now()), deletionOf("a", "u2", l.clock.Now()))
	l.becomes(t, "lasting/", 1, time.Minute)
	if got := l.count().told; got != 2 {
		t.Errorf("%d facts were told", got)
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
	eventually(t, "the facts", func() bool { return l.count().told == len(facts) })
	l.becomes(t, "lasting/", most, time.Minute)
	if got := count(t, client, "lasting/quiet"); got != 10 {
		t.Errorf("%d facts of the quiet namespace are left", got)
	}
	if got := metrictest.Values(t)["kv_evictions_total"] - before; got != 10 {
		t.Errorf("%v facts are counted as given up", got)
	}
}
