// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// Progress is how far the sink has been told of what a run is about.
type Progress struct {
	// Total is how many objects were marked, or told to the sink since the run began, Done those of which the sink has been told, or that it needs not be told of any more. Rejected
	// are those of Done of which it would not be told.
	Total, Done, Rejected int
}

// run is what is marked.
type run struct {
	id       string
	progress Progress
	// open says that nothing has been marked yet; early are the kinds of which all counts that the sink is told meanwhile.
	open  bool
	early []item.Kind
}

// Expedite makes everything of kinds that is pending due at once, and what was rejected pending. No kinds are all.
func (l *Ledger) Expedite(kinds ...item.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for of, objects := range l.objects {
		if !within(kinds, of.kind) {
			continue
		}
		for name, o := range objects {
			l.revive(o, join(of, name))
		}
	}
	l.hurry(kinds)
}

// revive makes what was rejected pending again. Its item is where that of something pending is.
func (l *Ledger) revive(o *object, key item.Key) {
	if o.pending != nil || o.frozen || o.told != rejected && o.told != rejectedRemoval {
		return
	}
	p := l.pend(o, key)
	p.remove, p.digest = o.told == rejectedRemoval, o.digest
	l.queues[key.Kind].put(p)
}

// Begin has everything of kinds count for the run of an ID that the sink is told from now on, until Mark says what else does. What was
// marked before counts no more. No kinds are all.
func (l *Ledger) Begin(id string, kinds ...item.Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run = run{id: id, open: true, early: slices.Clone(kinds)}
}

// Mark makes everything of kinds that is pending due at once, and counts for the run of an ID what becomes of it. It returns how much that
// is, with what the sink has been told since Begin, if the run is the one that began. What was marked before counts no more. No kinds are
// all.
func (l *Ledger) Mark(id string, kinds ...item.Kind) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run.id != id || !l.run.open {
		l.run = run{id: id}
	}
	l.run.open = false
	for kind, q := range l.queues {
		for _, h := range []byDue{q.waiting, q.ready} {
			for _, p := range h {
				l.mark(p, within(kinds, kind))
			}
		}
	}
	if l.frozen != nil {
		for _, e := range l.frozen.entries {
			l.mark(e.pending, within(kinds, e.key.Kind) && !e.settled && l.find(e.key).pending == nil)
		}
	}
	l.hurry(kinds)
	return l.run.progress.Total
}

func (l *Ledger) mark(p *pending, counts bool) {
	if p.marked = counts; counts {
		l.run.progress.Total++
	}
}

// Progress tells how it is with the run of an ID; nothing when another one was marked since.
func (l *Ledger) Progress(id string) Progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run.id != id {
		return Progress{}
	}
	return l.run.progress
}

// ended counts a change of which the sink has been told, or needs not be told.
func (l *Ledger) ended(p *pending, refused bool) {
	if l.run.open || !p.marked {
		return
	}
	l.done(refused)
}

// settled counts an entry of a batch.
func (l *Ledger) settled(e *entry, refused bool) {
	if l.run.open && within(l.run.early, e.key.Kind) {
		l.run.progress.Total++
		l.done(refused)
		return
	}
	l.ended(e.pending, refused)
}

func (l *Ledger) done(refused bool) {
	l.run.progress.Done++
	if refused {
		l.run.progress.Rejected++
	}
}

func (l *Ledger) hurry(kinds []item.Kind) {
	now := l.config.Clock.Now()
	for kind, q := range l.queues {
		if within(kinds, kind) {
			q.hurry(now)
		}
	}
	poke(l.wake)
}

func within(scope []item.Kind, kind item.Kind) bool {
	return len(scope) == 0 || slices.Contains(scope, kind)
}
