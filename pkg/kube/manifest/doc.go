// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest answers what the file of an object is: its bytes (Render) and its place below a destination's base
// folder (Location.Path).
//
// The bytes are the object's canonical YAML. They begin with the whole object and leave out what is runtime, so a field
// that this package has never heard of is content. The same object gives the same bytes on every run.
//
// The path depends on the object's type, namespace and name alone, never on the order in which objects were seen, and no
// two objects share a path even on a file system that ignores case.
package manifest
