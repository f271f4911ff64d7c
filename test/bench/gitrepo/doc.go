// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitrepo compares pkg/mirror/gitrepo with native git on the same work in the same run, so that its results are
// ratios that are comparable between machines.
package gitrepo
