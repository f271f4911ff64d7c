// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// Urgency is how soon the sink is to be told of an object.
type Urgency int

const (
	// Debounced is when the object has come to rest.
	Debounced Urgency = iota
	// Now is without waiting for that.
	Now
	// Again is like Now, and although the sink has been told the same.
	Again
)

const (
	// mostDebounces is how many debounces a change waits at most when the object comes never to rest.
	mostDebounces = 10
	// maxItemBytes is what a row can hold. No object has that much in labels and annotations unless somebody tries.
	maxItemBytes = 1 << 20
)

// Upsert says how an object is. What the sink has been told already changes nothing. Upsert waits while much is being written.
func (l *Ledger) Upsert(it item.Item, how Urgency) {
	digest, debounce := it.Digest(), l.config.Debounce()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaitRoom()
	o := l.add(it.Key)
	p := o.pending
	switch {
	case p != nil && !p.remove && p.digest == digest:
		l.repeat(p, how)
	case how != Again && (p == nil || !p.again) && l.knows(o, it.Key, digest):
		l.drop(o)
	default:
		l.change(o, it, digest, how, debounce)
	}
}

// repeat says of what is pending how soon the sink is to be told.
func (l *Ledger) repeat(p *pending, how Urgency) {
	if how == Debounced {
		return
	}
	p.again = p.again || how == Again
	l.schedule(p, func(now time.Time) { p.hasten(now) })
}

// change has the sink told of an object.
func (l *Ledger) change(o *object, it item.Item, digest [16]byte, how Urgency, debounce time.Duration) {
	text, err := it.Marshal()
	if err != nil || len(text) > maxItemBytes {
		klog.Background().Info("An object is too large to tell a sink of it", "object", it.Key, "bytes", len(text), "err", err)
		l.drop(o)
		l.tell(o, tooLarge, digest)
		l.soil(it.Key)
		return
	}
	p := l.pend(o, it.Key)
	p.remove, p.digest, p.again = false, digest, p.again || how == Again
	l.keepItem(o, it.Key, text)
	l.schedule(p, func(now time.Time) {
		if how != Debounced || p.prompt {
			p.hasten(now)
			return
		}
		p.due = now.Add(debounce)
		if latest := p.first.Add(mostDebounces * debounce); latest.Before(p.due) {
			p.due = latest
		}
	})
}

// Remove says that an object is gone.
func (l *Ledger) Remove(key item.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(key)
}

func (l *Ledger) remove(key item.Key) {
	o := l.find(key)
	if o == nil || o.pending != nil && o.pending.remove {
		return
	}
	if !l.mayHave(o, key) {
		if l.drop(o); o.told == nothing && !o.frozen {
			l.forget(key)
		}
		return
	}
	p := l.pend(o, key)
	p.remove, p.digest, p.again = true, [16]byte{}, false
	l.dropItem(o, key)
	l.schedule(p, func(now time.Time) {
		if p.due.IsZero() || p.due.After(now) {
			p.due = now
		}
	})
}

// Retain says which objects of a type there are, after a list: all others are gone. CustomResourceDefinitions are one type. What
// present does is done with the ledger locked.
func (l *Ledger) Retain(kind item.Kind, apiVersion, objectKind string, present func(item.Key) bool) {
	l.retain(func(of objectType, key item.Key) bool {
		if of.kind != kind || kind != item.CustomResourceDefinition && (of.apiVersion != apiVersion || of.objectKind != objectKind) {
			return true
		}
		return present(key)
	})
}

// RetainTypes says of which types objects are selected: those of all others are taken for gone. CustomResourceDefinitions are one
// type. What keep does is done with the ledger locked.
func (l *Ledger) RetainTypes(keep func(kind item.Kind, apiVersion, objectKind string) bool) {
	l.retain(func(of objectType, _ item.Key) bool {
		if of.kind == item.CustomResourceDefinition {
			return keep(of.kind, "", "")
		}
		return keep(of.kind, of.apiVersion, of.objectKind)
	})
}

// retain removes the objects that are not to be kept.
func (l *Ledger) retain(keep func(objectType, item.Key) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for of, objects := range l.objects {
		for name := range objects {
			if key := join(of, name); !keep(of, key) {
				l.remove(key)
			}
		}
	}
}

// pend returns what is pending of an object, something new if nothing is: schedule puts that in its queue.
func (l *Ledger) pend(o *object, key item.Key) *pending {
	if o.pending == nil {
		l.order++
		o.pending = &pending{key: key, first: l.config.Clock.Now(), order: l.order}
	}
	return o.pending
}

// schedule puts a change where it belongs once it is due at another time.
func (l *Ledger) schedule(p *pending, change func(now time.Time)) {
	q := l.queues[p.key.Kind]
	q.take(p)
	change(l.config.Clock.Now())
	q.put(p)
	poke(l.wake)
}

// drop forgets what is pending of an object: nothing has come of it.
func (l *Ledger) drop(o *object) {
	p := o.pending
	if p == nil {
		return
	}
	l.queues[p.key.Kind].take(p)
	o.pending = nil
	l.dropItem(o, p.key)
	l.ended(p, false)
}

// keepItem notes the item that belongs into the row of an object.
func (l *Ledger) keepItem(o *object, key item.Key, text []byte) {
	l.items[key], o.size = text, uint32(len(text))
	l.soil(key)
}

// dropItem notes that the row of an object has no item.
func (l *Ledger) dropItem(o *object, key item.Key) {
	delete(l.items, key)
	o.size = 0
	l.soil(key)
}

// soil notes that the row of an object is to be written.
func (l *Ledger) soil(key item.Key) {
	l.dirty[key] = struct{}{}
	poke(l.unwritten)
}

// poke wakes whoever waits, now or the next time.
func poke(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
