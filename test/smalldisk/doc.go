// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package smalldisk gives tests a disk that is soon full. Only Linux has one.
package smalldisk
