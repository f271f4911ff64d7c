// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

// ApplyConfig applies a changed Config to pending changes, where it makes them due earlier.
func (l *Ledger) ApplyConfig() {
	latest := l.config.Clock.Now().Add(l.config.Debounce())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.schedule.advance(latest)
}

// dissolve ends a batch that has more entries left than maxItems, which may have been lowered because the batch was too large for the sink.
// Unsettled entries become pending again. It reports whether there was such a batch; the caller must write then.
func (l *Ledger) dissolve(maxItems int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batch == nil || !l.batch.filled || l.batch.left <= maxItems {
		return false
	}
	for _, key := range l.batch.order {
		if e := l.batch.entries[key]; !e.settled {
			l.release(e)
		}
	}
	l.batch.left = 0
	l.unwritten.addHead()
	return true
}

// release makes an entry of the batch pending again, unless there is a newer change. The sink may have received it.
func (l *Ledger) release(e *entry) {
	o := l.objects.find(e.key)
	if o.pending == nil {
		if o.pending = e.pending; !e.remove {
			l.unwritten.items[e.key] = e.text
		}
		l.schedule.put(e.pending)
	}
	o.pending.inRun = o.pending.inRun || e.inRun // A run counts the object once.
	l.objects.setState(o, unknown, [16]byte{})
	o.inBatch, e.settled, e.text = false, true, nil
	l.unwritten.addRow(o, e.key)
}
