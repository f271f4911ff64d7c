// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairshare bounds how much is done at a time, and shares that among those for whom it is done: however much one of
// them asks for, and however long it takes, the others have their turn.
package fairshare
