// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environment answers when an environment is synced, and what is said of it.
package environment
