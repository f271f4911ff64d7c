// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalogs shows what users are promised of catalogs: on a real control plane, with real kubectl.
package catalogs
