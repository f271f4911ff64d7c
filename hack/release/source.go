// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// committed returns the time of the commit, which all files in archives have.
func committed(ctx context.Context, source string) (time.Time, error) {
	text, err := output(ctx, source, "git", "show", "--no-patch", "--format=%cI", "HEAD")
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time of the commit: %w", err)
	}
	return at.UTC(), nil
}

// output runs a program in a folder and returns what it prints. Its messages are those of this command.
func output(ctx context.Context, folder, program string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	var printed bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = folder, &printed, os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w", program, strings.Join(arguments, " "), err)
	}
	return printed.Bytes(), nil
}
