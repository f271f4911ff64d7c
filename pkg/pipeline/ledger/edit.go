// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import "container/heap"

// Reconsider has what Config says now count for what is pending already, where the sink is told sooner then.
func (l *Ledger) Reconsider() {
	latest := l.config.Clock.Now().Add(l.config.Debounce())
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.queues {
		for _, p := range q.waiting {
			if p.due.After(latest) {
				p.due = latest
			}
		}
		heap.Init(&q.waiting)
	}
	poke(l.wake)
}

// thaw takes the batch apart when it has more in it than batches have by now: it may have been too much for the sink. What is not
// settled is pending again. It says whether there was such a batch, which is settled then and has to be written.
func (l *Ledger) thaw(maxItems int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen == nil || !l.frozen.filled || l.frozen.left <= maxItems {
		return false
	}
	for _, key := range l.frozen.order {
		if e := l.frozen.entries[key]; !e.settled {
			l.release(e)
		}
	}
	l.frozen.left, l.headDirty = 0, true
	return true
}

// release makes an entry of the batch pending again, unless there is something newer. The sink may have been told of it.
func (l *Ledger) release(e *entry) {
	o := l.find(e.key)
	if o.pending == nil {
		if o.pending = e.pending; !e.remove {
			l.items[e.key] = e.text
		}
		l.queues[e.key.Kind].put(e.pending)
	}
	o.pending.marked = o.pending.marked || e.marked // A run counts it once, as what it is told of now.
	l.tell(o, unknown, [16]byte{})
	o.frozen, e.settled, e.text = false, true, nil
	l.soil(e.key)
}
