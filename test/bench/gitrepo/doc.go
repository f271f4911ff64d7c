// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitrepo measures what pkg/mirror/gitrepo costs beside native git on the same work in the same run, so that its
// figures are ratios that mean the same on every machine.
package gitrepo
