// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

// sinkState is what the sink has of an object.
type sinkState uint8

const (
	// unsent: the object was in no batch yet, or its removal was delivered.
	unsent sinkState = iota
	// delivered: the sink has the object with the digest.
	delivered
	// rejected: the sink rejected the object with the digest. What it has is unknown.
	rejected
	// rejectedRemoval: the sink rejected the removal of the object.
	rejectedRemoval
	// unknown: the last result is superseded, or the row could not be read.
	unknown
	// tooLarge: the object with the digest does not fit into a row. It is never sent.
	tooLarge

	numStates
)

// object is the state of an object in memory. There can be a hundred thousand.
type object struct {
	// digest is the digest of what the sink received.
	digest  [16]byte
	pending *pending
	// size is the size of the item of a pending or rejected upsert.
	size  uint32
	state sinkState
	// inBatch reports whether the current batch has an entry for the object.
	inBatch bool
	// changed reports whether the object has changed since its row was encoded.
	changed bool
}

// sinkHas reports whether the sink has the object with a digest. e is its unsettled entry in the current batch, nil if there is none. The
// entry counts as delivered.
func (o *object) sinkHas(e *entry, digest [16]byte) bool {
	if e != nil {
		return !e.change.remove && e.change.digest == digest
	}
	switch o.state {
	case delivered, tooLarge:
		return o.digest == digest
	case rejected: // A pending change would mean that it has changed since.
		return o.digest == digest && o.pending == nil
	}
	return false
}

// sinkMayHave reports whether the sink may have the object once the batch is settled. e is as for sinkHas. A rejected removal is not sent
// again.
func (o *object) sinkMayHave(e *entry) bool {
	if e != nil {
		return !e.change.remove
	}
	return o.state != unsent && o.state != rejectedRemoval
}
