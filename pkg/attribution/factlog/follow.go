// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package factlog

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/workstore"
)

// Follow tells of facts until ctx ends. The first call has all that are there, be it none, and says that they are
// recovered: from then on the caller knows what its predecessor knew. Further calls have facts as they are recorded by
// any replica; when the store has to be listed again, one has all once more, again as recovered. Told is called by one
// goroutine, and holds up what follows.
//
// Only the replica that leads follows. Each of its controllers may, and is told of everything: none waits for another.
func (l *Log) Follow(ctx context.Context, told func(facts []attribution.Fact, recovered bool)) {
	l.lasting.begin()
	defer l.lasting.end()
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
			told(l.facts(ctx, rows), rows.Listed)
		}
		if l.pause(ctx, &backoff) != nil {
			return
		}
	}
}

// facts returns what rows hold. What cannot be read is counted: it may cost changes their authors, which is better than
// costing all changes theirs.
func (l *Log) facts(ctx context.Context, told workstore.Told) []attribution.Fact {
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
