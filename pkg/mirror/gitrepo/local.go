// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// localGrace is how long a local command may take to stop after it was killed.
const localGrace = 2 * time.Second

// openLocal starts the service on a local repository.
func (r *Remote) openLocal(ctx context.Context, service service, budget *budget) (session, error) {
	subcommand := strings.TrimPrefix(string(service), "git-")
	ctx, kill := context.WithCancel(ctx)
	//nolint:gosec // The subcommand is one of two constants, and no option can come after the dashes.
	command := exec.CommandContext(ctx, "git", subcommand, "--", r.endpoint.Path)
	command.Env = append(os.Environ(), "GIT_PROTOCOL=", "LC_ALL=C")
	command.WaitDelay = localGrace
	stderr := &message{}
	command.Stderr = stderr
	input, output, err := startLocal(command)
	if err != nil {
		kill()
		return nil, refuse(Invalid, "local repositories need the git command: %v", err)
	}
	// Child processes may outlive the command and keep its output open.
	context.AfterFunc(ctx, func() { _ = output.Close() })
	end := func() {
		kill()
		_ = command.Wait()
	}
	return &streamSession{input: input, output: budget.meter(output), budget: budget, stderr: stderr, end: end}, nil
}

func startLocal(command *exec.Cmd) (io.WriteCloser, io.ReadCloser, error) {
	input, err := command.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return input, output, command.Start()
}
