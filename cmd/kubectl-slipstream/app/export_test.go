// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

// Ask asks a question, and fails unless the answer is yes.
var Ask = ask

// Coloured colours the lines of a unified diff.
var Coloured = coloured

// Touches reports whether a change may have changed a field.
var Touches = touches
