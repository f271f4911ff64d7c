// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package events writes Events, and emits them when the conditions of an object change: a Warning when a problem appears, and
// a Normal Event when it is resolved. Problems for which an earlier process has emitted an Event get no other one.
package events
