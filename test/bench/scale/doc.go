// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures one server with many environments, pipelines and Changes.
package scale
