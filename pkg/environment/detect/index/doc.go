// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package index answers which environments have a copy of an object of a source, and which version of it.
//
// It is EnvironmentDependencies in memory, found by what they are copies of: an answer costs as much as it has environments,
// however many there are. It is made anew from the records when the server starts; what it says of an environment is set when
// the records of that environment have been written. Whoever watches sources subscribes to it, to know what to watch.
package index
