// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environments measures the sync of an environment and lists of many environments.
package environments
