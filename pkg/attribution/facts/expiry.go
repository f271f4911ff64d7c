// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

const (
	// keepRecent is how long facts are kept for a replica that takes over. The leader receives them at once.
	keepRecent = time.Minute
	// keepUnread is how long this replica keeps them while it does not lead. A leader removes them much sooner.
	keepUnread = 15 * time.Minute
	// expiryInterval is how often rows are removed.
	expiryInterval = 10 * time.Second
)

// Forget removes the lasting facts of deleted objects. It does not wait.
func (l *Log) Forget(uids ...types.UID) {
	now := l.clock.Now()
	for _, uid := range uids {
		l.lasting.forget(uid, now)
	}
}

// expireUntil removes expired rows periodically until ctx ends.
func (l *Log) expireUntil(ctx context.Context) {
	ticker := l.clock.NewTicker(expiryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if err := l.expire(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to remove expired attribution facts, will retry", "interval", expiryInterval)
		}
	}
}

// expire removes expired rows.
//
// The time of a row is that of the clock of the replica that has written it. A row whose time lies too far ahead is
// removed like one that is too old: the clock that it was written by has been set back, and it would stay for that long.
// Clocks that jump or differ affect only what a replica finds when it takes over: the leader has received the facts before.
func (l *Log) expire(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	keep := keepUnread
	if l.lasting.following() {
		keep = keepRecent
	}
	now := l.clock.Now()
	err := errors.Join(
		l.table.DeleteRange(ctx, recentRows, recentKey(now.Add(-keep))),
		l.table.DeleteRange(ctx, recentKey(now.Add(keep)), endOfRecentRows))
	due := l.lasting.due(now)
	if failure := l.table.Delete(ctx, due...); failure != nil {
		l.lasting.giveBack(due)
		err = errors.Join(err, failure)
	}
	if err != nil {
		return fmt.Errorf("removing old facts: %w", err)
	}
	return nil
}
