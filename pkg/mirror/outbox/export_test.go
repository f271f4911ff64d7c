// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox

// IntakeLength is the maximum number of changes that are not durable yet.
const IntakeLength = intakeLength

// EncodeRow and DecodeRow convert a row to its stored form and back.
var (
	EncodeRow = encodeRow
	DecodeRow = decodeRow
)

// Full reports whether the intake is full, so that Enqueue blocks.
func (o *Outbox) Full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.intake.Full()
}
