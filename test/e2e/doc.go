// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the mirror on a real control plane, with kubectl and a Git server.
package e2e
