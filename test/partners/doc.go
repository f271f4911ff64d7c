// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package partners tests the server with the programs that its users have beside it: real Git hosts, and real controllers that apply what
// it mirrors. They are large to build, so only `make test-partners` runs these tests.
package partners
