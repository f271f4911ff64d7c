// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environments tests environments on a real control plane, with kubectl, and with a server that has only the
// documented permissions.
package environments
