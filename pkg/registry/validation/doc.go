// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation says what is wrong with an object of the group configbutler.ai, field by field. Every message says
// what is allowed, and none repeats what may be a credential.
package validation
