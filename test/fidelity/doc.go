// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fidelity shows that a mirror is a true copy: applied to an empty cluster it makes
// the same objects, and their mirror is the same tree.
package fidelity
