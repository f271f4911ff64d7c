// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"

	"github.com/configbutler/slipstream/pkg/failpoint"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// Delivered says that the sink has been told of objects of the batch with an ID. It is durable when there is no error; otherwise Delivered is
// to be called again.
func (l *Ledger) Delivered(ctx context.Context, id string, keys []item.Key) error {
	return l.settleAll(ctx, id, keys, delivered)
}

// Rejected says that the sink would not be told of objects of the batch with an ID. It is told again when they change, or when Expedite
// asks for it. It is durable when there is no error; otherwise Rejected is to be called again.
func (l *Ledger) Rejected(ctx context.Context, id string, keys []item.Key) error {
	return l.settleAll(ctx, id, keys, rejected)
}

// settleAll settles objects of the batch. Of another one, all is settled and durable.
func (l *Ledger) settleAll(ctx context.Context, id string, keys []item.Key, how told) error {
	if !l.settleHere(id, keys, how) {
		return nil
	}
	if err := l.Flush(ctx); err != nil {
		return fmt.Errorf("keep what the sink has been told: %w", err)
	}
	failpoint.Reach("batch-settled")
	return nil
}

// settleHere settles objects in memory. It returns false when there is no batch with the ID.
func (l *Ledger) settleHere(id string, keys []item.Key, how told) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen == nil || l.frozen.id != id {
		return false
	}
	for _, key := range keys {
		if e := l.frozen.entries[key]; e != nil && !e.settled {
			l.settle(e, how)
		}
	}
	return true
}

// settle ends an entry of the batch. What has changed meanwhile stays pending.
func (l *Ledger) settle(e *entry, how told) {
	o := l.find(e.key)
	o.frozen, e.settled = false, true
	l.settled(e, how == rejected)
	l.soil(e.key)
	l.settleObject(o, e, how)
	e.text = nil
	if l.frozen.left--; l.frozen.left == 0 {
		l.headDirty = true
	}
}

// settleObject notes what the sink has been told of an object.
func (l *Ledger) settleObject(o *object, e *entry, how told) {
	idle := o.pending == nil
	switch {
	case how == delivered && !e.remove:
		l.tell(o, delivered, e.digest)
	case how == delivered:
		if l.tell(o, nothing, [16]byte{}); idle {
			l.forget(e.key)
		}
	case how == rejected && idle && e.remove:
		l.tell(o, rejectedRemoval, [16]byte{})
	case how == rejected && idle:
		l.tell(o, rejected, e.digest)
		l.keepItem(o, e.key, e.text)
	default:
		l.tell(o, unknown, [16]byte{})
	}
}
