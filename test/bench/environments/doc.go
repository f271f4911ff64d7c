// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environments measures what it takes to sync an environment, and to list many of them.
package environments
