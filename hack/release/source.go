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

// commit is what a release is built from. Its time is that of all files in archives.
type commit struct {
	id   string
	time time.Time
}

func readCommit(ctx context.Context, source string) (commit, error) {
	output, err := output(ctx, source, "git", "-c", "log.showSignature=false", "show", "--no-patch", "--format=%H %cI", "HEAD")
	if err != nil {
		return commit{}, err
	}
	id, text, _ := strings.Cut(strings.TrimSpace(string(output)), " ")
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return commit{}, fmt.Errorf("read the time of the commit: %w", err)
	}
	return commit{id: id, time: at.UTC()}, nil
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
