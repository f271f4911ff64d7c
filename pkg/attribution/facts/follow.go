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

// Follow tells of facts until ctx ends. The first call has all that are there, be it none, and says that they are
// recovered: from then on the caller knows what its predecessor knew. Further calls have facts as they are recorded by
// any replica; when the store has to be listed again, one has all once more, again as recovered. Facts that this replica has
// enqueued come before they are written, too. Told is called one at a time, and holds up what follows.
//
// Only the replica that leads follows. Each of its controllers may, and is told of everything: none waits for another.
func (l *Log) Follow(ctx context.Context, told func(facts []attribution.Fact, recovered bool)) {
	l.lasting.begin()
	defer l.lasting.end()
	follower := newAhead(told)
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
			follower.tell(l.facts(ctx, rows), rows.Listed)
		}
		if l.pause(ctx, &backoff) != nil {
			return
		}
	}
}

// takeAhead has a follower told of facts when they are enqueued, until the function that it returns has returned.
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

// facts returns what rows hold. What cannot be read is counted: it may cost changes their authors, which is better than
// costing all changes theirs.
func (l *Log) facts(ctx context.Context, told table.Told) []attribution.Fact {
	failures := told.Unopened
	if told.Listed {
		l.lasting.listed()
	}
	var facts []attribution.Fact
	for _, row := range told.Rows {
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
		klog.FromContext(ctx).Error(err, "A report of who made a change is left out because it cannot be read")
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
