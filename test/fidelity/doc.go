// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fidelity tests that a mirror is an exact copy: applied to an empty cluster, it creates the same objects,
// whose mirror is the same tree. Restored after changes, it is the same tree again.
package fidelity
