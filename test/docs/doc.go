// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs tests the documentation: its commands are run and their output is compared, its manifests are applied, and its links
// and the demo are checked.
package docs
