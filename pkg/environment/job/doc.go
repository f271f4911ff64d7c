// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package job answers what becomes of a SyncStatus when the run of an environment's sync that it stands for is carried out.
//
// The record says InProgress before anything is done, what the run is about to write before it does, and at last what came of
// it. What is recorded is kept up with what others do to the record: it is read before each write, and written only if it has
// not changed since.
//
// # Dying
//
// A record that is InProgress while nobody works on it tells of a death. Its run is repeated, which counts as an attempt, and the
// record comes to tell of what all of its attempts have written. A run that dies at every attempt ends as Failed.
package job
