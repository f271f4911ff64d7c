// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package container

import (
	"errors"
	"os/exec"
)

func isolate(*exec.Cmd) {}

// Enter returns an error, because containers need Linux.
func Enter(string) error {
	return errors.New("containers need Linux")
}
