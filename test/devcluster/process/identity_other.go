// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// beginning returns the time at which the process began, to the second.
func beginning(pid int) (string, error) {
	return column(pid, "lstart=")
}

// ended reports whether the process is a zombie or does not exist.
func ended(pid int) bool {
	state, err := column(pid, "stat=")
	return err != nil || strings.HasPrefix(state, "Z")
}

// ending reports false: ps has no threads of a zombie.
func ending(int) bool { return false }

// column returns one column of ps for one process.
func column(pid int, name string) (string, error) {
	out, err := exec.Command("ps", "-o", name, "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", fmt.Errorf("failed to read the process table: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
