// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"sync"

	"github.com/configbutler/slipstream/pkg/attribution"
)

// aheadLimit bounds the calls of Enqueue whose facts wait for a follower of this process.
const aheadLimit = 1000

// ahead sends enqueued facts to one follower of this process while they are being written, so that a slow disk does not
// delay a review until after the change that it is about. The follower receives them again when they are written, which
// covers those that are dropped here for lack of room.
type ahead struct {
	facts chan []attribution.Fact

	// mu serializes calls of receive.
	mu      sync.Mutex
	receive func(facts []attribution.Fact, recovered bool)
	// listed is set when the follower has received the first list.
	listed bool
}

func newAhead(receive func([]attribution.Fact, bool)) *ahead {
	return &ahead{facts: make(chan []attribution.Fact, aheadLimit), receive: receive}
}

// enqueue does not block.
func (a *ahead) enqueue(facts []attribution.Fact) {
	select {
	case a.facts <- facts:
	default:
	}
}

// run sends facts to the follower until ctx ends. Those before the first list are dropped.
func (a *ahead) run(ctx context.Context) {
	for {
		select {
		case facts := <-a.facts:
			a.sendUnwritten(facts)
		case <-ctx.Done():
			return
		}
	}
}

func (a *ahead) sendUnwritten(facts []attribution.Fact) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listed {
		a.receive(facts, false)
	}
}

// send sends written facts to the follower.
func (a *ahead) send(facts []attribution.Fact, recovered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listed = true
	a.receive(facts, recovered)
}
