// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// Follow calls receive with facts until ctx ends. The first call has all stored facts, possibly none, as recovered: from then
// on the caller knows what its predecessor knew. Further calls have facts as any replica records them. When the store must
// be listed again, one call has all facts once more, as recovered. Facts that this replica has enqueued are also sent before
// they are written. Calls are serialized, and a call that blocks delays the next.
//
// Only the leader follows. Each of its controllers may follow, and receives all facts independently of the others.
func (l *Log) Follow(ctx context.Context, receive func(facts []attribution.Fact, recovered bool)) {
	l.lasting.begin()
	defer l.lasting.end()
	follower := newAhead(receive)
	defer l.takeAhead(ctx, follower)()
	logger := klog.FromContext(ctx)
	backoff := newBackoff()
	for {
		for rows, err := range l.table.Follow(ctx) {
			if err != nil {
				if ctx.Err() == nil {
					logger.Error(err, "Reports of who made changes cannot be read, trying again")
				}
				break
			}
			backoff = newBackoff()
			follower.send(l.facts(ctx, rows), rows.Listed)
		}
		if l.pause(ctx, &backoff) != nil {
			return
		}
	}
}

// takeAhead sends enqueued facts to a follower until stop has returned.
func (l *Log) takeAhead(ctx context.Context, follower *ahead) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group wait.Group
	group.StartWithContext(ctx, follower.run)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followers.Insert(follower)
	return func() {
		l.mu.Lock()
		l.followers.Delete(follower)
		l.mu.Unlock()
		cancel()
		group.Wait()
	}
}

// facts decodes rows. Rows that cannot be decoded are counted and left out: some changes may lose their authors, but the
// others keep theirs.
func (l *Log) facts(ctx context.Context, update table.Notification) []attribution.Fact {
	failures := update.Unopened
	if update.Listed {
		l.lasting.listed()
	}
	var facts []attribution.Fact
	for _, row := range update.Rows {
		of, err := decode(row)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if isLasting(row) && len(of) > 0 {
			l.lasting.add(row.Key, of[0])
		}
		facts = append(facts, of...)
	}
	for _, err := range failures {
		klog.FromContext(ctx).Error(err, "Failed to read attribution facts, skipping the row")
		unreadable.Inc()
	}
	return facts
}

// newBackoff returns the delays between attempts to read from a store that fails.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 10 * time.Second}
}

// pause waits for the next attempt. The error is that of ctx.
func (l *Log) pause(ctx context.Context, backoff *wait.Backoff) error {
	timer := l.clock.NewTimer(backoff.Step())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}
