// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package index is an in-memory index of EnvironmentDependencies by source object: which environments have a copy of an
// object, and which version of it.
//
// A lookup costs as much as it returns. The index is built from the records when the server starts, and updated when the
// records of an environment have been written. Listeners are notified of changes, to adapt their watches.
package index
