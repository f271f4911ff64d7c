// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// listing is a list of everything, beside the turns.
type listing struct {
	*task
	// failure is why it did not show everything. It is known when the task has ended.
	failure error
}

// list has everything of kinds listed, or simply everything.
func (t *turn) list(ctx context.Context, urgency ledger.Urgency, kinds ...item.Kind) {
	p, l := t.pipe, &listing{}
	p.polled, p.listing = t.now, l
	l.task = start(ctx, func(ctx context.Context) {
		l.failure = t.observer.List(ctx, p.uid, urgency, kinds...)
	}, func() { t.queue.Add(p.name) })
}

// lists says whether a list goes on. Of one that has ended, it notes what came of it.
func (p *pipe) lists() bool {
	if p.listing == nil {
		return false
	}
	if p.listing.goesOn() {
		return true
	}
	p.unlisted, p.listing = p.listing.failure, nil
	return false
}

// stopListing ends a list that goes on. Nobody asks what came of it.
func (p *pipe) stopListing() {
	if p.listing != nil {
		p.listing.stop()
	}
	p.listing = nil
}
