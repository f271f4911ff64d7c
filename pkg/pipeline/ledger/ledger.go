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

// TableName is the name of the table in the work store with all ledgers.
const TableName = "pipeline-ledger"

// maxBatchBytes bounds the JSON of the items in a batch. A larger item is a batch of its own.
const maxBatchBytes = 512 << 10

// Config configures a ledger.
type Config struct {
	Table *table.Table
	// Prefix is the prefix of the keys of rows. No prefix of a ledger is a prefix of another's.
	Prefix string
	// Clock determines when changes were reported and are due.
	Clock clock.Clock
	// Debounce returns the debounce period for changes that are reported next.
	Debounce func() time.Duration
	// MaxItems returns the maximum number of objects in a batch.
	MaxItems func() int
	// MaxWait returns how long a due change waits for the batch to become full.
	MaxWait func() time.Duration
}

// Ledger stores what one sink has received, and what is pending. It is safe for concurrent use, except that calls of Next must not overlap.
//
// Its methods lock mu and coordinate the parts. The parts have no locks: their methods are called with mu held.
type Ledger struct {
	config Config
	// maxBatchBytes is the constant of the same name, except in tests.
	maxBatchBytes int

	rows rows
	// wake makes Next check for a batch.
	wake wakeup
	// buffer writes the outdated rows. Its methods lock mu themselves, except Add and Full.
	buffer *table.Buffer[item.Key]

	// mu guards the fields below, with all that they refer to. It is not held during I/O. A write encodes the state of one moment: what
	// must be stored together changes while mu is held, or in buffer.Exclusive.
	mu        sync.Mutex
	room      room
	objects   *objects
	schedule  *schedule
	unwritten *unwritten
	run       *run
	// changes changes objects, schedule, unwritten and run together.
	changes *changes
	// batch is the current batch, nil if there is none; sequence is the sequence of the last one.
	batch    *batchState
	sequence int64
	// settling reports whether the write in progress stores that all of the batch is settled.
	settling bool
	// unreadable counts the rows that could not be read.
	unreadable int
}

// Counts describes the state of a ledger.
type Counts struct {
	// Known counts the objects that the sink has, in their current or an earlier state.
	Known int
	// Pending counts the objects with a change that was not delivered.
	Pending int
	// Rejected counts the objects whose last change the sink rejected.
	Rejected int
	// Unreadable counts the rows that could not be read since the ledger was opened.
	Unreadable int
	// OldestDue is when the oldest due change became due; zero if nothing is due.
	OldestDue time.Time
	// Blocked is why writes fail, nil if they succeed.
	Blocked error
}

// Counts returns the state of the ledger.
func (l *Ledger) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, since := l.schedule.next()
	counts := Counts{
		Known:      l.objects.counts[delivered],
		Rejected:   l.objects.counts[rejected] + l.objects.counts[rejectedRemoval] + l.objects.counts[tooLarge],
		Pending:    l.schedule.length(),
		Unreadable: l.unreadable,
		Blocked:    l.room.blocked,
		OldestDue:  since,
	}
	if l.batch != nil {
		for e := range l.batch.unsettled() {
			if l.objects.find(e.change.key).pending == nil {
				counts.Pending++
			}
		}
		if at := l.batch.at; l.batch.left > 0 && !at.IsZero() && (since.IsZero() || at.Before(since)) {
			counts.OldestDue = at
		}
	}
	return counts
}

// ApplyConfig applies a changed Config to pending changes, where it makes them due earlier.
func (l *Ledger) ApplyConfig() {
	latest := l.config.Clock.Now().Add(l.config.Debounce())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.schedule.advance(latest)
}

// Upsert records the current state of an object. An object that the sink already has makes no change. Upsert blocks while too many changes
// wait to be written.
func (l *Ledger) Upsert(it item.Item, urgency Urgency) {
	digest, debounce := it.Digest(), l.config.Debounce()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.room.wait(l.buffer.Full)
	l.changes.upsert(l.batch, it, digest, urgency, debounce)
}

// Remove records the deletion of an object.
func (l *Ledger) Remove(key item.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes.remove(l.batch, key)
}

// Retain removes all objects of a type but those present, after a list. CustomResourceDefinitions are one type. present is called with the
// ledger locked.
func (l *Ledger) Retain(kind item.Kind, apiVersion, objectKind string, present func(item.Key) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes.retain(l.batch, func(key item.Key) bool {
		if key.Kind != kind || kind != item.CustomResourceDefinition && (key.APIVersion != apiVersion || key.ObjectKind != objectKind) {
			return true
		}
		return present(key)
	})
}

// RetainTypes removes the objects of all types but those that are selected. CustomResourceDefinitions are one type. keep is called with the
// ledger locked.
func (l *Ledger) RetainTypes(keep func(kind item.Kind, apiVersion, objectKind string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes.retain(l.batch, func(key item.Key) bool {
		if key.Kind == item.CustomResourceDefinition {
			return keep(key.Kind, "", "")
		}
		return keep(key.Kind, key.APIVersion, key.ObjectKind)
	})
}

// Expedite makes all pending changes due at once, and rejected objects pending.
func (l *Ledger) Expedite() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes.revive(nil, nil)
	l.schedule.expedite(nil)
}

// StartRun counts everything of kinds that is sent from now on for a run, until MarkRun. The previous run does not count any more. No kinds
// means all.
func (l *Ledger) StartRun(id string, kinds ...item.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run.start(id, kinds)
}

// MarkRun makes all pending changes of kinds due at once, and rejected objects pending, except those that were rejected since StartRun was
// called for the same run. It counts these changes for the run, and returns their number, with what was sent since StartRun. The previous
// run does not count any more. No kinds means all.
func (l *Ledger) MarkRun(id string, kinds ...item.Kind) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes.revive(kinds, l.run.refusedBy(id))
	l.run.close(id)
	for p := range l.schedule.all() {
		l.run.mark(p, within(kinds, p.key.Kind))
	}
	if l.batch != nil {
		for e := range l.batch.unsettled() {
			p := e.change
			l.run.mark(p, within(kinds, p.key.Kind) && l.objects.find(p.key).pending == nil)
		}
	}
	l.schedule.expedite(kinds)
	return l.run.progress.Total
}

// Progress returns the progress of a run. It is zero if another run was started since.
func (l *Ledger) Progress(id string) Progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.run.progressOf(id)
}
