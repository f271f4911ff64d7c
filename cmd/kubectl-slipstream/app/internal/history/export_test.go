// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

// Touches reports whether a change may have changed a field.
var Touches = touches
