// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pipelines shows what users are promised of SyncPipelines: on a real control plane, with real kubectl, a server that has
// the documented rights only, and receivers that check what they are sent as the real ones do, and misbehave.
package pipelines
