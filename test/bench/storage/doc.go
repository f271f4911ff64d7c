// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage measures what API objects cost on the engine of pkg/store/bolt beside an etcd, both below upstream's
// own store, on the same disk with every write synced, in turn in short rounds of one run: its figures are ratios that
// mean the same on every machine.
package storage
