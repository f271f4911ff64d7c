// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribution tests that commits name the author of a change, or none: on a real control plane with users who change the
// same objects, impersonate others, have requests rejected, and delete objects, with each of the attribution signals and without
// any.
package attribution
