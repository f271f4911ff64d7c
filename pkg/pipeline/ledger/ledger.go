// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// TableName is that of the table of the work store that all ledgers are kept in.
const TableName = "pipeline-ledger"

// DefaultMaxBytes bounds the items of a batch, as JSON. One that is larger is a batch of its own.
const DefaultMaxBytes = 512 << 10

// Config is what a ledger works with.
type Config struct {
	Table *table.Table
	// Prefix is what the keys of the rows begin with. No two ledgers have the same at a time, or one that another's begins with.
	Prefix string
	// Clock says when changes come and are due.
	Clock clock.Clock
	// Debounce is how long an object must not have changed. What it says counts for changes that come then.
	Debounce func() time.Duration
	// MaxItems is how many objects a batch has at most.
	MaxItems func() int
	// MaxWait is how long what is due waits for a batch to become full.
	MaxWait func() time.Duration
	// MaxBytes bounds the items of a batch; 0 means DefaultMaxBytes.
	MaxBytes int
}

// Ledger is what one sink was told and is to be told. It may be used concurrently, Next by one at a time.
type Ledger struct {
	config Config
	// wake makes Next look again; unwritten makes Run write, and crowded at once.
	wake, unwritten, crowded chan struct{}
	// turn is held by who writes: what is written later is newer. It is a channel so that waiting for it can be given up.
	turn chan struct{}

	// mu guards what follows. It is not held while something is read or written.
	mu sync.Mutex
	// room is signalled when something has been taken to be written.
	room    *sync.Cond
	objects map[objectType]map[objectName]*object
	// tally counts objects by what the sink was told of them.
	tally  [tallies]int
	queues map[item.Kind]*queue
	// order counts what becomes pending.
	order uint64
	// frozen is the batch that has been handed out, nil when there is none; sequence is that of the last one.
	frozen   *frozen
	sequence int64
	run      run
	// dirty are the objects whose rows are not as they are here.
	dirty map[item.Key]struct{}
	// headDirty says that the row of the batch is not as it is here.
	headDirty bool
	// items are those of pending changes and rejected objects that are not in a row yet, and those that are pending while another one of
	// the object is in the batch.
	items map[item.Key][]byte
	// running says that Run goes on.
	running bool
	// blocked is why the last write has failed.
	blocked error
	// unreadable counts the rows that could not be read.
	unreadable int
}

// Counts tell how a ledger is.
type Counts struct {
	// Known are the objects that the sink has been told of, as they are or were.
	Known int
	// Pending are the objects that the sink is still to be told of, or that they are gone.
	Pending int
	// Rejected are the objects of which the sink would not be told the last time.
	Rejected int
	// Unreadable are the rows that could not be read since the ledger was opened.
	Unreadable int
	// OldestDue is when the first of what is due became so; zero when nothing is.
	OldestDue time.Time
	// Blocked is why nothing can be written at present, nil if it can.
	Blocked error
}

// Counts tells how the ledger is.
func (l *Ledger) Counts() Counts {
	now := l.config.Clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := Counts{
		Known:      l.tally[delivered],
		Rejected:   l.tally[rejected] + l.tally[rejectedRemoval] + l.tally[tooLarge],
		Unreadable: l.unreadable,
		Blocked:    l.blocked,
	}
	for _, q := range l.queues {
		counts.Pending += q.length()
		counts.due(q.oldestDue(now))
	}
	if l.frozen != nil {
		for _, e := range l.frozen.entries {
			if !e.settled && l.find(e.key).pending == nil {
				counts.Pending++
			}
		}
		counts.due(l.frozen.at)
	}
	return counts
}

// due notes when something became due, zero for never.
func (c *Counts) due(at time.Time) {
	if !at.IsZero() && (c.OldestDue.IsZero() || at.Before(c.OldestDue)) {
		c.OldestDue = at
	}
}
