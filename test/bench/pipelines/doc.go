// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pipelines measures how soon a pipeline tells of a change, and how long it takes to tell of everything.
package pipelines
