// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// Progress is the progress of a run with one sink.
type Progress struct {
	// Total counts the objects that were marked, or sent since the run started. Done counts those of them that were sent, or need not be
	// sent any more; Rejected is the part of Done that the sink rejected.
	Total, Done, Rejected int
}

// run counts the changes of the current run. The previous one does not count any more.
type run struct {
	id       string
	progress Progress
	// open reports whether nothing was marked yet. Until then, everything of the early kinds that is sent counts.
	open  bool
	early []item.Kind
	// refused are the objects that the sink has rejected while the run was open. The run does not send them again.
	refused sets.Set[item.Key]
}

// start starts a run that counts everything of kinds that is sent from now on. No kinds means all.
func (r *run) start(id string, kinds []item.Kind) {
	*r = run{id: id, open: true, early: slices.Clone(kinds), refused: sets.New[item.Key]()}
}

// close ends the time before changes are marked, and starts the run if it is not the current one.
func (r *run) close(id string) {
	if r.id != id || !r.open {
		*r = run{id: id}
	}
	r.open, r.refused = false, nil
}

// refusedBy returns the objects that the sink has rejected since a run was started.
func (r *run) refusedBy(id string) sets.Set[item.Key] {
	if r.id != id {
		return nil
	}
	return r.refused
}

// mark records whether a pending change counts for the run.
func (r *run) mark(p *pending, counts bool) {
	if p.inRun = counts; counts {
		r.progress.Total++
	}
}

// countChange counts a marked change that was sent, or need not be sent any more.
func (r *run) countChange(p *pending, refused bool) {
	if r.open || !p.inRun {
		return
	}
	r.count(refused)
}

// countEntry counts an entry of a batch.
func (r *run) countEntry(e *entry, refused bool) {
	if r.open && within(r.early, e.change.key.Kind) {
		r.progress.Total++
		if r.count(refused); refused {
			r.refused.Insert(e.change.key)
		}
		return
	}
	r.countChange(e.change, refused)
}

func (r *run) count(refused bool) {
	r.progress.Done++
	if refused {
		r.progress.Rejected++
	}
}

// progressOf returns the progress of a run, zero if it is not the current one.
func (r *run) progressOf(id string) Progress {
	if r.id != id {
		return Progress{}
	}
	return r.progress
}
