// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package soak

import "testing"

// newDisk returns nil: a disk can be mounted for a single process on Linux only.
func newDisk(*testing.T) *disk { return nil }

func (*disk) fill() (free func() error, err error) { return nil, nil }
