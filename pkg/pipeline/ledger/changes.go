// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// Urgency is how soon a change is sent.
type Urgency int

const (
	// Debounced changes wait until the object has not changed for the debounce period.
	Debounced Urgency = iota
	// Immediate changes are due at once.
	Immediate
	// Resend is like Immediate, and sends the object even if the sink already has it.
	Resend
)

// maxItemBytes is the largest item that fits into a row. Only deliberately large labels and annotations exceed it.
const maxItemBytes = 1 << 20

// changes determines which objects have pending changes: objects are reported, a batch takes changes, entries of a batch get results or
// become pending again. Its methods keep the parts consistent:
//   - The pending change of an object is in the queue of its kind, and in no other.
//   - The item of a pending upsert, or of a rejected object, is in memory or in the row of the object.
//   - The row of an object is written when its content has changed.
type changes struct {
	objects   *objects
	schedule  *schedule
	unwritten *unwritten
	// run counts the changes that are discarded.
	run *run
}

// upsert compares an object with what the sink has, and makes a difference pending. b is the current batch.
func (c *changes) upsert(b *batchState, it item.Item, digest [16]byte, urgency Urgency, debounce time.Duration) {
	o := c.objects.add(it.Key)
	p, e := o.pending, b.entryOf(o, it.Key)
	switch {
	case p != nil && !p.remove && p.digest == digest:
		c.repeat(p, urgency)
	case urgency != Resend && (p == nil || !p.force) && o.sinkHas(e, digest):
		if e != nil && e.text == nil { // The item could not be read from the row, and the row may have lost it to the pending change.
			e.text, _ = it.Marshal() // The same item was encoded before.
		}
		c.drop(o)
	default:
		c.pendUpsert(o, it, digest, urgency, debounce)
	}
}

// repeat updates the urgency of a pending change.
func (c *changes) repeat(p *pending, urgency Urgency) {
	if urgency == Debounced {
		return
	}
	p.force = p.force || urgency == Resend
	c.schedule.move(p, p.expedite)
}

// pendUpsert makes an upsert pending.
func (c *changes) pendUpsert(o *object, it item.Item, digest [16]byte, urgency Urgency, debounce time.Duration) {
	text, err := it.Marshal()
	if err != nil || len(text) > maxItemBytes {
		klog.Background().Info("Object is too large to send", "object", it.Key, "bytes", len(text), "err", err)
		c.drop(o)
		c.objects.setState(o, tooLarge, digest)
		c.unwritten.addRow(o, it.Key)
		return
	}
	p := c.schedule.pend(o, it.Key)
	p.remove, p.digest, p.force = false, digest, p.force || urgency == Resend
	c.unwritten.keepItem(o, it.Key, text)
	c.schedule.move(p, func(now time.Time) {
		if urgency == Debounced {
			p.debounce(now, debounce)
		} else {
			p.expedite(now)
		}
	})
}

// remove makes the removal of an object pending, unless the sink does not have it. b is the current batch.
func (c *changes) remove(b *batchState, key item.Key) {
	o := c.objects.find(key)
	if o == nil || o.pending != nil && o.pending.remove {
		return
	}
	if !o.sinkMayHave(b.entryOf(o, key)) {
		if c.drop(o); o.state == unsent && !o.inBatch {
			c.forget(key)
		}
		return
	}
	p := c.schedule.pend(o, key)
	p.remove, p.digest, p.force = true, [16]byte{}, false
	c.unwritten.dropItem(o, key)
	c.schedule.move(p, p.advance)
}

// retain removes all objects but those to keep. b is the current batch.
func (c *changes) retain(b *batchState, keep func(item.Key) bool) {
	for key := range c.objects.all() {
		if !keep(key) {
			c.remove(b, key)
		}
	}
}

// drop discards the pending change of an object.
func (c *changes) drop(o *object) {
	p := o.pending
	if p == nil {
		return
	}
	c.schedule.take(p)
	o.pending = nil
	c.unwritten.dropItem(o, p.key)
	c.run.countChange(p, false)
}

// forget deletes an object, and its row.
func (c *changes) forget(key item.Key) {
	c.objects.remove(key)
	c.unwritten.addDeleted(key)
}

// revive makes the rejected objects of kinds pending again, except some. Their items are where those of pending changes are. The caller
// makes the changes due.
func (c *changes) revive(kinds []item.Kind, except sets.Set[item.Key]) {
	for key, o := range c.objects.all() {
		isRejected := o.state == rejected || o.state == rejectedRemoval
		if !isRejected || o.pending != nil || o.inBatch || !within(kinds, key.Kind) || except.Has(key) {
			continue
		}
		p := c.schedule.pend(o, key)
		p.remove, p.digest = o.state == rejectedRemoval, o.digest
		c.schedule.put(p)
	}
}

// take moves due changes from a queue to a batch, the earliest first, up to both maximums. One change may exceed maxBytes.
func (c *changes) take(q *queue, b *batchState, maxItems, maxBytes int) {
	for size := 0; q.first() != nil && b.left < maxItems; {
		p := q.first()
		o := c.objects.find(p.key)
		if size += int(o.size) + len(p.key.String()); size > maxBytes && b.left > 0 {
			return
		}
		q.pop()
		b.add(&entry{change: p, text: c.unwritten.takeItem(p.key)})
		o.pending, o.inBatch = nil, true
	}
}

// release makes an unsettled entry of the batch pending again, unless there is a newer change. The sink may have received it. The caller
// settles the entry in the batch.
func (c *changes) release(e *entry) {
	p := e.change
	o := c.objects.find(p.key)
	if o.pending == nil {
		if o.pending = p; !p.remove {
			c.unwritten.keepItem(o, p.key, e.text)
		}
		c.schedule.put(p)
	}
	o.pending.inRun = o.pending.inRun || p.inRun // A run counts the object once.
	c.objects.setState(o, unknown, [16]byte{})
	o.inBatch = false
	c.unwritten.addRow(o, p.key)
}

// settle records the result of an unsettled entry for its object. A newer change stays pending. The caller settles the entry in the batch.
func (c *changes) settle(e *entry, result sinkState) {
	key, removed := e.change.key, e.change.remove
	o := c.objects.find(key)
	o.inBatch = false
	c.unwritten.addRow(o, key)
	idle := o.pending == nil
	switch {
	case result == delivered && !removed:
		c.objects.setState(o, delivered, e.change.digest)
	case result == delivered:
		if c.objects.setState(o, unsent, [16]byte{}); idle {
			c.forget(key)
		}
	case result == rejected && idle && removed:
		c.objects.setState(o, rejectedRemoval, [16]byte{})
	case result == rejected && idle:
		c.objects.setState(o, rejected, e.change.digest)
		c.unwritten.keepItem(o, key, e.text)
	default:
		c.objects.setState(o, unknown, [16]byte{})
	}
}
