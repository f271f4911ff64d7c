// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import "encoding/binary"

const (
	// maxInsert and maxCopy bound one delta instruction, in bytes. Git reads longer copies, but writes none beyond 64 KiB.
	maxInsert = 0x7f
	maxCopy   = 0xffff
)

// appendTreeDelta appends the instructions that build target's encoding from base's. It compares entries rather than
// bytes, so changes can be anywhere in the directory, and an entry of which only the hash changed costs the hash.
func appendTreeDelta(delta []byte, base, target *directory) []byte {
	delta = binary.AppendUvarint(delta, uint64(base.encodedSize()))
	delta = binary.AppendUvarint(delta, uint64(target.encodedSize()))
	d := treeDelta{instructions: delta}
	old, now := base.entries, target.entries
	for len(now) > 0 {
		if len(old) == 0 {
			d.insert(now[0].appendTo(nil))
			now = now[1:]
			continue
		}
		switch order := compareEntries(&old[0], &now[0]); {
		case old[0].same(&now[0]):
			d.copy(old[0].encodedSize())
			old, now = old[1:], now[1:]
		case order < 0:
			d.skip(old[0].encodedSize())
			old = old[1:]
		case order > 0:
			d.insert(now[0].appendTo(nil))
			now = now[1:]
		default:
			d.replace(&old[0], &now[0])
			old, now = old[1:], now[1:]
		}
	}
	d.flush()
	return d.instructions
}

// treeDelta merges adjacent copies and inserts into as few instructions as possible. At most one of the two is pending
// at a time.
type treeDelta struct {
	instructions []byte
	// offset is the position in base.
	offset  int
	copying int
	inserts []byte
}

func (d *treeDelta) copy(size int) {
	if len(d.inserts) > 0 {
		d.flush()
	}
	d.copying += size
	d.offset += size
}

func (d *treeDelta) insert(data []byte) {
	if d.copying > 0 {
		d.flush()
	}
	d.inserts = append(d.inserts, data...)
}

func (d *treeDelta) skip(size int) {
	d.flush()
	d.offset += size
}

// replace replaces an entry by one with the same name.
func (d *treeDelta) replace(old, now *entry) {
	if old.mode == now.mode {
		d.copy(old.labelSize())
		d.insert(now.hash[:])
		d.skip(hashSize)
		return
	}
	d.insert(now.appendTo(nil))
	d.skip(old.encodedSize())
}

func (d *treeDelta) flush() {
	for start := d.offset - d.copying; d.copying > 0; {
		size := min(d.copying, maxCopy)
		d.instructions = appendCopy(d.instructions, start, size)
		start += size
		d.copying -= size
	}
	for len(d.inserts) > 0 {
		size := min(len(d.inserts), maxInsert)
		d.instructions = append(d.instructions, byte(size))
		d.instructions = append(d.instructions, d.inserts[:size]...)
		d.inserts = d.inserts[size:]
	}
	d.inserts = d.inserts[:0]
}

// appendCopy appends one copy instruction: a byte with a bit for each byte of offset (four) and size (two) that follows;
// zero bytes are omitted.
func appendCopy(instructions []byte, offset, size int) []byte {
	at := len(instructions)
	instructions = append(instructions, 0)
	present := byte(0x80)
	for i, value := range [...]byte{
		byte(offset), byte(offset >> 8), byte(offset >> 16), byte(offset >> 24), byte(size), byte(size >> 8),
	} {
		if value != 0 {
			present |= 1 << i
			instructions = append(instructions, value)
		}
	}
	instructions[at] = present
	return instructions
}
