// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// gather collects the current evidence about an event.
func (j *Joiner) gather(w *pendingEvent) *evidence {
	e := &evidence{pending: w, times: waitingTimes{w.arrived, w.arrived, w.arrived}}
	if j.sources.active() {
		e.times = j.times(w, time.Now())
	}
	if len(j.recent.ids)+len(j.lasting.ids) == 0 {
		return e
	}
	e.reviewsMissed = j.unreviewed.has(w.object, time.Now())
	if w.event.Operation == v1alpha1.OperationDelete {
		j.gatherDeletions(e)
		return e
	}
	e.exact = slices.Clone(j.recent.after[w.state])
	e.writer = writerOf(w.object, j.recent.ofUID[w.state.uid], w.event.Object)
	if w.known {
		e.attempts = slices.Clone(j.recent.before[revision{w.state.uid, w.predecessor}])
	} else {
		e.attempts = filter(j.recent.ofUID[w.state.uid], func(k *storedFact) bool {
			return k.Signal == Admission && k.Operation != v1alpha1.OperationDelete
		})
	}
	e.named = filter(j.recent.ofName[w.object], func(k *storedFact) bool { return k.UID == "" || k.UID == w.state.uid })
	return e
}

func (j *Joiner) gatherDeletions(e *evidence) {
	for _, from := range []*store{j.recent, j.lasting} {
		e.deletions = append(e.deletions, filter(from.ofUID[e.pending.state.uid], isDeletion)...)
		e.named = append(e.named, filter(from.ofName[e.pending.object], func(k *storedFact) bool { return k.Signal == Audit && k.UID == "" })...)
		if e.pending.object.Namespace != "" {
			namespace := Object{GroupResource: namespaces, Name: e.pending.object.Namespace}
			e.namespaceDeletions = append(e.namespaceDeletions, filter(from.ofName[namespace], isDeletion)...)
		}
	}
	e.named = append(e.named, filter(j.recent.ofName[e.pending.object.collection()], func(k *storedFact) bool { return k.Collection != nil })...)
}

func isDeletion(k *storedFact) bool { return k.Operation == v1alpha1.OperationDelete }

// times returns the times until which an event waits for facts. Measurements since the event arrived are included.
func (j *Joiner) times(w *pendingEvent, now time.Time) waitingTimes {
	audit := j.sources.grace(Audit, w.object, now, j.config.MaxWait)
	admission := j.sources.grace(Admission, w.object, now, j.config.MaxWait)
	return waitingTimes{audit: w.arrived.Add(audit), admission: w.arrived.Add(admission), last: w.arrived.Add(max(audit, admission))}
}
