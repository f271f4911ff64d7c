// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"context"
	"sync"
	"testing"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/test/testkit"
)

// TestEnqueuedFactsDoNotWaitForTheStore checks that followers in the process that enqueues facts receive them at once, and
// again when they are written. Followers in other processes receive them only when they are written.
func TestEnqueuedFactsDoNotWaitForTheStore(t *testing.T) {
	client := bolttest.NewClient(t)
	faulty := newFaultyKV(client, nil)
	log := newLog(client)
	start(t, log.Run)
	near, alsoNear, far := follow(t, log), follow(t, log), follow(t, newLog(client))
	faulty.set(errStore)
	log.Enqueue(newFacts("a", 3)...)
	for _, each := range []*follower{near, alsoNear} {
		testkit.EventuallyTrue(t, "unwritten facts", func() bool { return each.count().received == 3 })
	}
	if got := far.count().received; got != 0 {
		t.Errorf("another replica received %d unwritten facts", got)
	}
	faulty.set(nil)
	for _, each := range []*follower{near, alsoNear, far} {
		testkit.EventuallyTrue(t, "written facts", func() bool {
			return each.count().received == 3 && each.timesReceived("a/2") == map[bool]int{true: 1, false: 2}[each == far]
		})
	}
	near.stop()
	log.Enqueue(newFact("a", 3))
	testkit.EventuallyTrue(t, "a fact after another follower has stopped", func() bool { return alsoNear.count().received == 4 })
	if got := near.count().received; got != 3 {
		t.Errorf("the stopped follower received %d facts", got)
	}
}

// TestSlowFollower checks that a slow follower does not delay another, and receives the facts that did not fit into its
// queue when they are written.
func TestSlowFollower(t *testing.T) {
	const calls = 3000
	log := newLog(bolttest.NewClient(t))
	start(t, log.Run)
	unblock := make(chan struct{})
	release := sync.OnceFunc(func() { close(unblock) })
	slow := &follower{recovered: map[string]int{}, received: map[string]int{}}
	start(t, func(ctx context.Context) {
		log.Follow(ctx, func(facts []attribution.Fact, recovered bool) {
			if !recovered {
				<-unblock
			}
			slow.record(facts, recovered)
		})
	})
	t.Cleanup(release)
	testkit.EventuallyTrue(t, "the first list", func() bool { return slow.count().lists > 0 })
	quick := follow(t, log)
	for i := range calls {
		log.Enqueue(newFact("a", i))
	}
	testkit.EventuallyTrue(t, "all facts", func() bool { return quick.count().received == calls })
	release()
	testkit.EventuallyTrue(t, "all facts, late", func() bool { return slow.count().received == calls })
}
