// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"context"
	"sync"
	"testing"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
)

// Who follows in the process that enqueues is told at once, and again when the facts are written; others only then.
func TestEnqueuedFactsDoNotWaitForTheStore(t *testing.T) {
	client := bolttest.NewClient(t)
	shaky := &shakyKV{KV: client.KV}
	client.KV = shaky
	log := newLog(client)
	start(t, log.Run)
	near, alsoNear, far := follow(t, log), follow(t, log), follow(t, newLog(client))
	shaky.set(errStore)
	log.Enqueue(newFacts("a", 3)...)
	for _, each := range []*follower{near, alsoNear} {
		eventually(t, "the facts that are not written", func() bool { return each.count().told == 3 })
	}
	if got := far.count().told; got != 0 {
		t.Errorf("another replica was told of %d facts that are not written", got)
	}
	shaky.set(nil)
	for _, each := range []*follower{near, alsoNear, far} {
		eventually(t, "the facts that are written", func() bool {
			return each.count().told == 3 && each.timesTold("a/2") == map[bool]int{true: 1, false: 2}[each == far]
		})
	}
	near.stop()
	log.Enqueue(newFact("a", 3))
	eventually(t, "a fact after another has stopped", func() bool { return alsoNear.count().told == 4 })
	if got := near.count().told; got != 3 {
		t.Errorf("one who has stopped was told of %d facts", got)
	}
}

// One who takes long is told of what was enqueued meanwhile when it is written, and holds up nobody.
func TestFollowerThatTakesLong(t *testing.T) {
	const calls = 3000
	log := newLog(bolttest.NewClient(t))
	start(t, log.Run)
	goOn := make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	slow := &follower{recovered: map[string]int{}, told: map[string]int{}}
	start(t, func(ctx context.Context) {
		log.Follow(ctx, func(facts []attribution.Fact, recovered bool) {
			if !recovered {
				<-goOn
			}
			slow.note(facts, recovered)
		})
	})
	t.Cleanup(release)
	eventually(t, "the first list", func() bool { return slow.count().lists > 0 })
	quick := follow(t, log)
	for i := range calls {
		log.Enqueue(newFact("a", i))
	}
	eventually(t, "all facts", func() bool { return quick.count().told == calls })
	release()
	eventually(t, "all facts, late", func() bool { return slow.count().told == calls })
}
