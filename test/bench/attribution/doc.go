// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribution measures how soon kube-apiserver has its question about a change answered, of how many changes the
// author is known when many people change the same objects, and what it costs to look for an author that nobody tells.
package attribution
