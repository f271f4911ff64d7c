// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restore sets objects back to earlier contents.
//
// A content is an object in its canonical form (see package manifest). Updated replaces the content of a live object and
// keeps everything else. Undo computes the content without one earlier change. Plan compares objects with their contents,
// and a Writer dry-runs and executes the steps of the plan with the rights of its client.
package restore
