// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package events answers which Events an object gets when its conditions change: one when something comes to be the matter,
// one when nothing is any more, and none for what an earlier process has told of.
package events
