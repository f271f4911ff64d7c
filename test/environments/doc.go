// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environments shows what users are promised of environments: on a real control plane, with real kubectl, and a
// server that has the documented rights only.
package environments
