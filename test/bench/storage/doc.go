// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage compares the engine of pkg/store/bolt with etcd, both below the store of k8s.io/apiserver, on the same
// disk with synced writes, alternating in short rounds of one run. Its results are ratios that are comparable between
// machines.
package storage
