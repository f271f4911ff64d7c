// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pipelines tests SyncPipelines on a real control plane, with kubectl, a server that has only the documented permissions,
// and receivers that validate requests like the real ones, and that fail on request.
package pipelines
