// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalogs tests catalogs on a real control plane, with kubectl.
package catalogs
