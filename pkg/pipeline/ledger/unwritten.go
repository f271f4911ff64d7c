// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// rowBytes is the size of a row without its item, for the bounds of the buffer.
const rowBytes = 512

// headItem identifies the row of the batch in the buffer. It is the key of no object.
var headItem item.Key

// unwritten has what the rows do not have yet: which of them are outdated, and the items.
type unwritten struct {
	// buffer has the keys of the objects whose rows are outdated, and headItem if the row of the batch is.
	buffer *table.Buffer[item.Key]
	// items are the items of pending changes and rejected objects that are not written yet, and of changes that are pending while the batch
	// contains another change of the object.
	items map[item.Key][]byte
}

// addRow has the row of an object written.
func (u *unwritten) addRow(o *object, key item.Key) {
	o.changed = true
	u.buffer.Add(key, rowBytes+len(u.items[key]))
}

// addDeleted has the row of an object deleted that does not exist any more.
func (u *unwritten) addDeleted(key item.Key) { u.buffer.Add(key, rowBytes) }

// addHead has the row of the batch written.
func (u *unwritten) addHead() { u.buffer.Add(headItem, rowBytes) }

// keepItem stores the item that belongs into the row of an object.
func (u *unwritten) keepItem(o *object, key item.Key, text []byte) {
	u.items[key], o.size = text, uint32(len(text))
	u.addRow(o, key)
}

// dropItem removes the item from the row of an object.
func (u *unwritten) dropItem(o *object, key item.Key) {
	delete(u.items, key)
	o.size = 0
	u.addRow(o, key)
}

// takeItem returns the item of a change that enters the batch, nil if it is in its row only. The row does not change.
func (u *unwritten) takeItem(key item.Key) []byte {
	text := u.items[key]
	delete(u.items, key)
	return text
}

// written drops the items that are stored in rows now. An item that is pending while the batch contains another change of the object stays:
// its row is written again when the entry is settled.
func (u *unwritten) written(keys []item.Key, objects *objects) {
	for _, key := range keys {
		if o := objects.find(key); o == nil || !o.changed && !o.inBatch {
			delete(u.items, key)
		}
	}
}
