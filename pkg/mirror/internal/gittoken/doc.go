// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gittoken obtains the tokens with which the server logs in at Git hosts that issue them for a short time: installation tokens of
// GitHub Apps, and tokens of Entra ID for a workload identity.
//
// A token is cached until five minutes before its end, for all that log in with the same identity. Nothing here logs, and errors contain
// neither tokens nor keys.
package gittoken
