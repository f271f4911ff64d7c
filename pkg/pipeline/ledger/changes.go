// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

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

// Upsert records the current state of an object. An object that the sink already has makes no change. Upsert blocks while too many changes
// wait to be written.
func (l *Ledger) Upsert(it item.Item, urgency Urgency) {
	digest, debounce := it.Digest(), l.config.Debounce()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waitForRoom()
	o := l.objects.add(it.Key)
	p := o.pending
	switch {
	case p != nil && !p.remove && p.digest == digest:
		l.repeat(p, urgency)
	case urgency != Resend && (p == nil || !p.force) && o.sinkHas(l.batch.entryOf(o, it.Key), digest):
		l.drop(o)
	default:
		l.change(o, it, digest, urgency, debounce)
	}
}

// repeat updates the urgency of a pending change.
func (l *Ledger) repeat(p *pending, urgency Urgency) {
	if urgency == Debounced {
		return
	}
	p.force = p.force || urgency == Resend
	l.schedule.move(p, p.expedite)
}

// change makes an upsert pending.
func (l *Ledger) change(o *object, it item.Item, digest [16]byte, urgency Urgency, debounce time.Duration) {
	text, err := it.Marshal()
	if err != nil || len(text) > maxItemBytes {
		klog.Background().Info("Object is too large to send", "object", it.Key, "bytes", len(text), "err", err)
		l.drop(o)
		l.objects.setState(o, tooLarge, digest)
		l.unwritten.addRow(o, it.Key)
		return
	}
	p := l.schedule.pend(o, it.Key)
	p.remove, p.digest, p.force = false, digest, p.force || urgency == Resend
	l.unwritten.keepItem(o, it.Key, text)
	l.schedule.move(p, func(now time.Time) {
		if urgency == Debounced {
			p.debounce(now, debounce)
		} else {
			p.expedite(now)
		}
	})
}

// Remove records the deletion of an object.
func (l *Ledger) Remove(key item.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(key)
}

func (l *Ledger) remove(key item.Key) {
	o := l.objects.find(key)
	if o == nil || o.pending != nil && o.pending.remove {
		return
	}
	if !o.sinkMayHave(l.batch.entryOf(o, key)) {
		if l.drop(o); o.state == unsent && !o.inBatch {
			l.forget(key)
		}
		return
	}
	p := l.schedule.pend(o, key)
	p.remove, p.digest, p.force = true, [16]byte{}, false
	l.unwritten.dropItem(o, key)
	l.schedule.move(p, p.advance)
}

// Retain removes all objects of a type but those present, after a list. CustomResourceDefinitions are one type. present is called with the
// ledger locked.
func (l *Ledger) Retain(kind item.Kind, apiVersion, objectKind string, present func(item.Key) bool) {
	l.retain(func(key item.Key) bool {
		if key.Kind != kind || kind != item.CustomResourceDefinition && (key.APIVersion != apiVersion || key.ObjectKind != objectKind) {
			return true
		}
		return present(key)
	})
}

// RetainTypes removes the objects of all types but those that are selected. CustomResourceDefinitions are one type. keep is called with the
// ledger locked.
func (l *Ledger) RetainTypes(keep func(kind item.Kind, apiVersion, objectKind string) bool) {
	l.retain(func(key item.Key) bool {
		if key.Kind == item.CustomResourceDefinition {
			return keep(key.Kind, "", "")
		}
		return keep(key.Kind, key.APIVersion, key.ObjectKind)
	})
}

// retain removes all objects but those to keep.
func (l *Ledger) retain(keep func(item.Key) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.objects.all() {
		if !keep(key) {
			l.remove(key)
		}
	}
}

// forget deletes an object and its row.
func (l *Ledger) forget(key item.Key) {
	l.objects.remove(key)
	l.unwritten.addDeleted(key)
}

// drop discards the pending change of an object.
func (l *Ledger) drop(o *object) {
	p := o.pending
	if p == nil {
		return
	}
	l.schedule.take(p)
	o.pending = nil
	l.unwritten.dropItem(o, p.key)
	l.run.countChange(p, false)
}
