// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e shows what users are promised: on a real control plane, with real kubectl
// and a real Git server.
package e2e
