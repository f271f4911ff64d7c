// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs shows that the documentation is true: its commands are run, what it says
// they print is compared with what they print, its manifests are applied, its links lead
// somewhere, and the demo does what it tells.
package docs
