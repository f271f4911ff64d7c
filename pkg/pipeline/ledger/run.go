// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// Progress is the progress of a run with one sink.
type Progress struct {
	// Total counts the objects that were marked, or sent since the run started. Done counts those of them that were sent, or need not be sent
	// any more; Rejected is the part of Done that the sink rejected.
	Total, Done, Rejected int
}

// run counts the changes of the current run.
type run struct {
	id       string
	progress Progress
	// open reports whether nothing was marked yet. Until then, everything of the early kinds that is sent counts.
	open  bool
	early []item.Kind
}

// Expedite makes all pending changes of kinds due at once, and rejected objects pending. No kinds means all.
func (l *Ledger) Expedite(kinds ...item.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, o := range l.objects.all() {
		if within(kinds, key.Kind) {
			l.revive(o, key)
		}
	}
	l.schedule.expedite(kinds)
}

// revive makes a rejected object pending again. Its item is where the item of a pending change is.
func (l *Ledger) revive(o *object, key item.Key) {
	if o.pending != nil || o.inBatch || o.state != rejected && o.state != rejectedRemoval {
		return
	}
	p := l.schedule.pend(o, key)
	p.remove, p.digest = o.state == rejectedRemoval, o.digest
	l.schedule.put(p)
}

// StartRun counts everything of kinds that is sent from now on for a run, until MarkRun. The previous run does not count any more. No kinds
// means all.
func (l *Ledger) StartRun(id string, kinds ...item.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run = run{id: id, open: true, early: slices.Clone(kinds)}
}

// MarkRun makes all pending changes of kinds due at once and counts them for a run. It returns their number, with what was sent since
// StartRun if that was for the same run. The previous run does not count any more. No kinds means all.
func (l *Ledger) MarkRun(id string, kinds ...item.Kind) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run.id != id || !l.run.open {
		l.run = run{id: id}
	}
	l.run.open = false
	for p := range l.schedule.all() {
		l.mark(p, within(kinds, p.key.Kind))
	}
	if l.batch != nil {
		for _, e := range l.batch.entries {
			l.mark(e.pending, within(kinds, e.key.Kind) && !e.settled && l.objects.find(e.key).pending == nil)
		}
	}
	l.schedule.expedite(kinds)
	return l.run.progress.Total
}

func (l *Ledger) mark(p *pending, counts bool) {
	if p.inRun = counts; counts {
		l.run.progress.Total++
	}
}

// Progress returns the progress of a run. It is zero if another run was started since.
func (l *Ledger) Progress(id string) Progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run.id != id {
		return Progress{}
	}
	return l.run.progress
}

// countChange counts a marked change that was sent, or need not be sent any more.
func (l *Ledger) countChange(p *pending, refused bool) {
	if l.run.open || !p.inRun {
		return
	}
	l.count(refused)
}

// countEntry counts an entry of a batch.
func (l *Ledger) countEntry(e *entry, refused bool) {
	if l.run.open && within(l.run.early, e.key.Kind) {
		l.run.progress.Total++
		l.count(refused)
		return
	}
	l.countChange(e.pending, refused)
}

func (l *Ledger) count(refused bool) {
	l.run.progress.Done++
	if refused {
		l.run.progress.Rejected++
	}
}
