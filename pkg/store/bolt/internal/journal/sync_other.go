// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package journal

import "os"

func syncData(f *os.File) error { return f.Sync() }
