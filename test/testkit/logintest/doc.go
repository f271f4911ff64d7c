// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logintest has what Git hosts log programs in with, for tests: the part of GitHub's API that issues installation tokens, the
// endpoint of Entra ID that exchanges tokens of workloads, and Git servers that accept only tokens that they have issued. They check what
// they receive against what the vendors document, and share no code with what sends it.
package logintest
