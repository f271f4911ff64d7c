// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

// The values of --dry-run, as in kubectl.
const (
	DryRunNone   = "none"
	DryRunServer = "server"
	DryRunClient = "client"
)
