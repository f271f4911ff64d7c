// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus

// NextStates is nextStates.
var NextStates = nextStates
