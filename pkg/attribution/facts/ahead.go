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

// ahead takes enqueued facts to one follower of this process while they are being written, so that a slow disk does not
// make a review later than the change that it is about. The follower gets them once more when they are written; that is
// what counts for those for which there is no room here.
type ahead struct {
	facts chan []attribution.Fact

	// mu is held while told is called, which is for one at a time.
	mu   sync.Mutex
	told func(facts []attribution.Fact, recovered bool)
	// listed says that the follower knows what was there before it.
	listed bool
}

func newAhead(told func([]attribution.Fact, bool)) *ahead {
	return &ahead{facts: make(chan []attribution.Fact, aheadLimit), told: told}
}

// enqueue does not block.
func (a *ahead) enqueue(facts []attribution.Fact) {
	select {
	case a.facts <- facts:
	default:
	}
}

// run takes facts to the follower until ctx ends. Before the first list they are left out.
func (a *ahead) run(ctx context.Context) {
	for {
		select {
		case facts := <-a.facts:
			a.tellUnwritten(facts)
		case <-ctx.Done():
			return
		}
	}
}

func (a *ahead) tellUnwritten(facts []attribution.Fact) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listed {
		a.told(facts, false)
	}
}

// tell takes written facts to the follower.
func (a *ahead) tell(facts []attribution.Fact, recovered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listed = true
	a.told(facts, recovered)
}
