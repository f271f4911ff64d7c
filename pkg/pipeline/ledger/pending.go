// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// maxDebounces bounds the delay of an object that keeps changing, in debounce periods.
const maxDebounces = 10

// pending is a change that was not sent.
type pending struct {
	key item.Key
	// remove reports whether the object was deleted; otherwise digest is the digest of its item.
	remove bool
	digest [16]byte
	// force sends the change even if the sink already has it.
	force bool
	// expedited reports whether the change was requested and skips the debounce.
	expedited bool
	// inRun reports whether the change counts for the run.
	inRun bool
	// first is when the first change was reported, due when it can be sent. order breaks ties.
	first, due time.Time
	order      uint64
	// index is the position in its heap.
	index int
}

// advance makes a change due at a time, unless it is due earlier.
func (p *pending) advance(at time.Time) {
	if p.due.IsZero() || p.due.After(at) {
		p.due = at
	}
}

// expedite makes a change due now, and its successors too. A change that is already due keeps its position.
func (p *pending) expedite(now time.Time) {
	p.expedited = true
	p.advance(now)
}

// debounce makes a change due after the debounce period. An expedited change, or one that was delayed for long, is due earlier.
func (p *pending) debounce(now time.Time, period time.Duration) {
	if p.expedited {
		p.advance(now)
		return
	}
	p.due = now.Add(period)
	p.advance(p.first.Add(maxDebounces * period))
}
