// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicas measures how soon another replica continues the work of a leader that was killed or stopped.
package replicas
