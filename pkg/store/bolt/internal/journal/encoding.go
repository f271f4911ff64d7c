// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

const (
	// sector is what a disk writes whole or not at all. An entry begins with a
	// sector of its own: writing it never touches an older one.
	sector = 512

	// firstEntry is where entries begin, behind the checkpoint.
	firstEntry = 4096

	// HeaderSize is the room that a caller leaves for the header of an entry.
	HeaderSize = 40

	entryMagic      = 0x316a5353 // "SSj1"
	checkpointMagic = 0x3163706a6c737373
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is what stands before the payload of an entry, little endian:
//
//	0   magic        4 bytes
//	4   length       4, of the payload
//	8   generation   8
//	16  sequence     8
//	24  base         8, the checkpoint that was valid
//	32  checksum     4, of the journal's salt, the bytes before, and the payload
//	36  zero         4
type header struct {
	length, checksum           uint32
	generation, sequence, base uint64
}

func (h header) put(b []byte) {
	binary.LittleEndian.PutUint32(b, entryMagic)
	binary.LittleEndian.PutUint32(b[4:], h.length)
	binary.LittleEndian.PutUint64(b[8:], h.generation)
	binary.LittleEndian.PutUint64(b[16:], h.sequence)
	binary.LittleEndian.PutUint64(b[24:], h.base)
	binary.LittleEndian.PutUint32(b[32:], h.checksum)
	binary.LittleEndian.PutUint32(b[36:], 0)
}

func getHeader(b []byte) (header, bool) {
	if binary.LittleEndian.Uint32(b) != entryMagic {
		return header{}, false
	}
	return header{
		length:     binary.LittleEndian.Uint32(b[4:]),
		generation: binary.LittleEndian.Uint64(b[8:]),
		sequence:   binary.LittleEndian.Uint64(b[16:]),
		base:       binary.LittleEndian.Uint64(b[24:]),
		checksum:   binary.LittleEndian.Uint32(b[32:]),
	}, true
}

// checksum is that of an entry, header included. The salt keeps whoever can choose
// a payload from making one that holds a valid entry.
func checksum(salt uint64, entry []byte) uint32 {
	sum := crc32.Update(0, castagnoli, binary.LittleEndian.AppendUint64(nil, salt))
	sum = crc32.Update(sum, castagnoli, entry[:32])
	return crc32.Update(sum, castagnoli, entry[HeaderSize:])
}

// nextEntry is where the entry after one of n bytes at an offset begins.
func nextEntry(offset int64, n int) int64 {
	return (offset + int64(n) + sector - 1) / sector * sector
}

// stateSize is how long the description of a state may be. A checkpoint fits in a sector.
const stateSize = 256

// Checkpoint is a state of the protected file that is whole on disk.
type Checkpoint struct {
	// Store is a number that tells the protected file from others.
	Store uint64
	// Sequence is the last entry that the state has in it.
	Sequence uint64
	// State is what the protected file needs to go back to the state, at most 256 bytes.
	State []byte
}

// slot is a checkpoint as it stands in a file: magic, the numbers below, the
// state's length and the state, checksum.
type slot struct {
	Checkpoint
	number, generation, salt uint64
}

func (s slot) encode() []byte {
	b := make([]byte, 0, sector)
	for _, n := range []uint64{checkpointMagic, s.number, s.generation, s.salt, s.Store, s.Sequence, uint64(len(s.State))} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = append(b, s.State...)
	b = append(b, make([]byte, sector-4-len(b))...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeSlot(b []byte) (slot, bool) {
	number := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	body := b[:sector-4]
	if number(0) != checkpointMagic || crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[sector-4:]) || number(6) > stateSize {
		return slot{}, false
	}
	return slot{
		number: number(1), generation: number(2), salt: number(3),
		Checkpoint: Checkpoint{Store: number(4), Sequence: number(5), State: bytes.Clone(body[56 : 56+number(6)])},
	}, true
}
