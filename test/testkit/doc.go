// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testkit has what the tests of many packages share: waiting for a state, a clock that a test advances, and the death of the
// process under test. The packages below it provide an API, receivers of HTTP requests, users and control planes.
package testkit
