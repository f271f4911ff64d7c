// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Fields of /proc/PID/stat, counted from the one after the program's name, which is
// in parentheses and may contain any characters.
const (
	statState   = 0
	statThreads = 17
	statBegin   = 19
)

// beginning returns the boot id and the clock tick at which the process began.
func beginning(pid int) (string, error) {
	fields, err := stat(pid)
	if err != nil {
		return "", err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("failed to read the boot's identity: %w", err)
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[statBegin], nil
}

// ended reports whether the process is a zombie or does not exist. A killed process is a zombie while other threads of it still end, and
// keep its ports and files open.
func ended(pid int) bool {
	fields, err := stat(pid)
	return err != nil || fields[statState] == "X" || fields[statState] == "Z" && (fields[statThreads] == "1" || fields[statThreads] == "0")
}

// ending reports whether the process is a zombie with threads that still end.
func ending(pid int) bool {
	fields, err := stat(pid)
	return err == nil && fields[statState] == "Z" && !ended(pid)
}

// stat returns the fields that follow the program's name.
func stat(pid int) ([]string, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, fmt.Errorf("failed to read the process table: %w", err)
	}
	name := strings.LastIndexByte(string(content), ')')
	fields := strings.Fields(string(content[name+1:]))
	if name < 0 || len(fields) <= statBegin {
		return nil, errors.New("failed to read the process table: too few fields")
	}
	return fields, nil
}
