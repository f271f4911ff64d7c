// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package soak tests the server for a long time under random work of all kinds and random faults. At the end everything must be equal:
// Git and the cluster, the history and Git, catalogs and their source, environments and their catalog, and what receivers have got.
package soak
