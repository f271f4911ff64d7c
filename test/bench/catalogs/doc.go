// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalogs measures how soon catalogs record changes of their source, and the memory used when all workloads
// change continuously.
package catalogs
