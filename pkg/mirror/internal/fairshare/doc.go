// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairshare bounds concurrency and shares it fairly among owners: an owner with many or slow operations does not
// starve the others.
package fairshare
