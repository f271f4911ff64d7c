// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// errCorrupt is returned for a record of the file that cannot be decoded.
var errCorrupt = errors.New("corrupt record")

// Flags of a log record.
const (
	flagDelete   = 1 << 0 // the change removed the key
	flagPrevious = 1 << 1 // the key existed before the change
)

// State record, the value of the keys bucket:
//
//	mod revision, create revision, version, lease (uvarint each), value

// appendState encodes the state of a key.
func appendState(dst []byte, kv *mvccpb.KeyValue) []byte {
	dst = appendVarint(dst, kv.ModRevision)
	return append(appendLife(dst, kv), kv.Value...)
}

// decodeState decodes a state record. The result shares no memory with key or record. Without withValue the value is
// omitted.
func decodeState(key, record []byte, withValue bool) (*mvccpb.KeyValue, error) {
	d := decoder{rest: record}
	kv := &mvccpb.KeyValue{ModRevision: d.varint()}
	d.life(kv)
	if d.short {
		return nil, fmt.Errorf("state of %q: %w", key, errCorrupt)
	}
	value := d.rest
	if !withValue {
		value = nil
	}
	buffer := make([]byte, len(key)+len(value))
	n := copy(buffer, key)
	copy(buffer[n:], value)
	kv.Key, kv.Value = buffer[:n:n], buffer[n:]
	return kv, nil
}

// Log record, the value of a segment:
//
//	flags (1 byte), key length (uvarint), key,
//	unless it is a delete: create revision, version, lease, value length (uvarint each), value,
//	if the key existed:    a state record of what it held before
//
// The revision is in the record's key.

// appendEvent encodes one change.
func appendEvent(dst []byte, event *mvccpb.Event) []byte {
	var flags byte
	if event.Type == mvccpb.Event_DELETE {
		flags |= flagDelete
	}
	if event.PrevKv != nil {
		flags |= flagPrevious
	}
	dst = append(dst, flags)
	dst = appendVarint(dst, int64(len(event.Kv.Key)))
	dst = append(dst, event.Kv.Key...)
	if flags&flagDelete == 0 {
		dst = appendLife(dst, event.Kv)
		dst = appendVarint(dst, int64(len(event.Kv.Value)))
		dst = append(dst, event.Kv.Value...)
	}
	if event.PrevKv != nil {
		dst = appendState(dst, event.PrevKv)
	}
	return dst
}

// eventKey returns the key of a log record. It shares memory with record.
func eventKey(record []byte) ([]byte, error) {
	d := decoder{rest: record}
	d.take(1)
	key := d.take(d.varint())
	if d.short {
		return nil, fmt.Errorf("change: %w", errCorrupt)
	}
	return key, nil
}

// addedBy returns the number of keys that a log record has added, whose key can be read: 1, 0 or -1.
func addedBy(record []byte) int64 {
	switch record[0] & (flagDelete | flagPrevious) {
	case 0:
		return 1
	case flagDelete | flagPrevious:
		return -1
	default:
		return 0
	}
}

// decodeEvent decodes a log record. The result shares no memory with record.
func decodeEvent(revision int64, record []byte) (*mvccpb.Event, error) {
	d := decoder{rest: bytes.Clone(record)}
	var flags byte
	if head := d.take(1); head != nil {
		flags = head[0]
	}
	kv := &mvccpb.KeyValue{ModRevision: revision, Key: d.take(d.varint())}
	event := &mvccpb.Event{Type: mvccpb.Event_DELETE, Kv: kv}
	if flags&flagDelete == 0 {
		event.Type = mvccpb.Event_PUT
		d.life(kv)
		kv.Value = d.take(d.varint())
	}
	if flags&flagPrevious != 0 {
		previous := &mvccpb.KeyValue{Key: kv.Key, ModRevision: d.varint()}
		d.life(previous)
		previous.Value = d.rest
		event.PrevKv = previous
	}
	if d.short {
		return nil, fmt.Errorf("change of revision %d: %w", revision, errCorrupt)
	}
	return event, nil
}

// appendLife encodes the metadata of a key other than its last change.
func appendLife(dst []byte, kv *mvccpb.KeyValue) []byte {
	dst = appendVarint(dst, kv.CreateRevision)
	dst = appendVarint(dst, kv.Version)
	return appendVarint(dst, kv.Lease)
}

// appendVarint encodes a number that is not negative.
func appendVarint(dst []byte, n int64) []byte {
	return binary.AppendUvarint(dst, uint64(n))
}

// decoder decodes a record from front to back. Once a record is too short, everything further decodes as zero and short
// stays set.
type decoder struct {
	rest  []byte
	short bool
}

func (d *decoder) varint() int64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.rest, d.short = nil, true
		return 0
	}
	d.rest = d.rest[size:]
	return int64(n)
}

func (d *decoder) take(n int64) []byte {
	if d.short || n < 0 || n > int64(len(d.rest)) {
		d.rest, d.short = nil, true
		return nil
	}
	taken := d.rest[:n:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) life(kv *mvccpb.KeyValue) {
	kv.CreateRevision = d.varint()
	kv.Version = d.varint()
	kv.Lease = d.varint()
}

// putInt64 encodes a number so that the byte order is that of the numbers.
func putInt64(n int64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(n))
}

// getInt64 is the inverse of [putInt64]; a missing number is 0.
func getInt64(b []byte) int64 {
	if len(b) < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}
