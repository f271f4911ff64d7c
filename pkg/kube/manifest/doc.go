// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest renders an object as a file: its bytes (Render) and its path below a destination's base folder
// (Location.Path).
//
// The bytes are the object's canonical YAML. Render starts from the whole object and drops runtime fields, so an
// unknown field is content. The same object renders to the same bytes on every run.
//
// The path depends only on the object's type, namespace and name, never on the order in which objects were seen. No two
// objects share a path, not even on a file system that ignores case.
package manifest
