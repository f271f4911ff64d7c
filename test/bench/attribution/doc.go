// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribution measures the latency of admission reviews, the share of changes with the right author when many
// users change the same objects, and the cost of waiting for authors that are never reported.
package attribution
