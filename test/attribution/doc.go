// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribution shows that commits name who made the change, or nobody: on a real control plane, whose users change
// the same objects, change them for others, are refused, and delete, with each of the signals that tell of them and
// with none.
package attribution
