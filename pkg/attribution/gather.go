// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// gather collects what is known about an event now.
func (j *Joiner) gather(w *waiting) *evidence {
	e := &evidence{waiting: w, times: waitingTimes{w.arrived, w.arrived, w.arrived}}
	if j.sources.heard() {
		e.times = j.times(w, time.Now())
	}
	if len(j.recent.ids)+len(j.lasting.ids) == 0 {
		return e
	}
	e.reviewsMissed = j.unreviewed.lately(w.object, time.Now())
	if w.event.Operation == v1alpha1.OperationDelete {
		j.gatherDeletions(e)
		return e
	}
	e.exact = slices.Clone(j.recent.made[w.state])
	e.writer = writerOf(w.object, j.recent.ofUID[w.state.uid], w.event.Object)
	if w.known {
		e.attempts = slices.Clone(j.recent.tried[revision{w.state.uid, w.predecessor}])
	} else {
		e.attempts = where(j.recent.ofUID[w.state.uid], func(k *kept) bool {
			return k.Signal == Admission && k.Operation != v1alpha1.OperationDelete
		})
	}
	e.named = where(j.recent.ofName[w.object], func(k *kept) bool { return k.UID == "" || k.UID == w.state.uid })
	return e
}

func (j *Joiner) gatherDeletions(e *evidence) {
	for _, from := range []*store{j.recent, j.lasting} {
		e.deletions = append(e.deletions, where(from.ofUID[e.state.uid], isDeletion)...)
		e.named = append(e.named, where(from.ofName[e.object], func(k *kept) bool { return k.Signal == Audit && k.UID == "" })...)
		if e.object.Namespace != "" {
			namespace := Object{GroupResource: namespaces, Name: e.object.Namespace}
			e.namespaceDeletions = append(e.namespaceDeletions, where(from.ofName[namespace], isDeletion)...)
		}
	}
	e.named = append(e.named, where(j.recent.ofName[e.object.collection()], func(k *kept) bool { return k.Collection != nil })...)
}

func isDeletion(k *kept) bool { return k.Operation == v1alpha1.OperationDelete }

// times are until when an event waits for facts. What has been measured since the event came counts.
func (j *Joiner) times(w *waiting, now time.Time) waitingTimes {
	audit := j.sources.grace(Audit, w.object, now, j.config.MaxWait)
	admission := j.sources.grace(Admission, w.object, now, j.config.MaxWait)
	return waitingTimes{audit: w.arrived.Add(audit), admission: w.arrived.Add(admission), last: w.arrived.Add(max(audit, admission))}
}
