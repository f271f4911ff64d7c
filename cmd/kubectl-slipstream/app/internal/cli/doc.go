// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli has what all commands of the plugin share: clients, exit codes, questions and colours.
package cli
