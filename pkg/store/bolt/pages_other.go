// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package bolt

// ReleasePages does nothing. Only Linux counts pages of files to the memory that limits a container.
func (e *Engine) ReleasePages() error { return nil }
