// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pipelines measures how soon a pipeline sends a change, and how long a full sync takes.
package pipelines
