// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/configbutler/slipstream/test/devcluster/process"
)

// guard is a process that stops the cluster when the process that started it has
// ended, for whatever reason: it waits for the end of its input, a pipe that only
// its starter holds open. A nil guard does nothing.
type guard struct {
	process process.Process
	pipe    *os.File
}

// startGuard starts the guard of a cluster that must not outlive its starter.
func (c *Cluster) startGuard() error {
	if c.state.Options.Detached {
		return nil
	}
	input, pipe, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("failed to create the guard's pipe: %w", err)
	}
	spec := c.spec("guard", c.state.Options.SupportProgram, "guard", "--dir="+string(c.files))
	spec.Input = input
	running, err := process.Start(spec)
	if err := errors.Join(err, input.Close()); err != nil {
		return errors.Join(err, pipe.Close())
	}
	c.guard = &guard{process: running, pipe: pipe}
	return nil
}

// dismiss stops the guard.
func (g *guard) dismiss(ctx context.Context) error {
	if g == nil {
		return nil
	}
	return errors.Join(g.process.Stop(ctx, syscall.SIGKILL), g.pipe.Close())
}
