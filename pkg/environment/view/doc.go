// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view answers what a sync of an environment would change, as the API shows it.
//
// What is shown is the plan that a sync makes, made now: nothing of it is kept, and a sync that begins later plans anew. Nothing
// is written.
package view
