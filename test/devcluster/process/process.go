// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process starts programs that outlive their starter, and stops
// exactly these later, also from another process.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// pollInterval is the interval at which Wait checks a process.
const pollInterval = 10 * time.Millisecond

// Spec describes how to start a program.
type Spec struct {
	// Name is the name of the process in messages.
	Name string
	// Path is the program's file.
	Path string
	// Args are its arguments, without the program's own name.
	Args []string
	// Env are KEY=VALUE lines added to the environment of the starter.
	Env []string
	// Log is the file to which its output is appended.
	Log string
	// Input is its standard input; empty if nil.
	Input *os.File
	// Held is a file that the process keeps open without using it, so that it holds a lock on the file; optional.
	Held *os.File
}

// Process identifies a started program. It can be stored, and identifies the same
// process in every reader: Begin distinguishes it from a later one with the same PID.
type Process struct {
	// Name is the name of the process in messages.
	Name string `json:"name"`
	// PID is its process id.
	PID int `json:"pid"`
	// Begin is an opaque value for the time at which it began.
	Begin string `json:"begin"`
	// Log is the file with its output.
	Log string `json:"log"`
}

// Start starts the program in a session of its own, so that neither the end of the
// caller nor an interrupt from its terminal stops it.
func Start(spec Spec) (Process, error) {
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return Process{}, fmt.Errorf("failed to open the log of %s: %w", spec.Name, err)
	}
	command := exec.Command(spec.Path, spec.Args...) //nolint:noctx // it must outlive whatever starts it
	command.Env = append(os.Environ(), spec.Env...)
	command.Stdout, command.Stderr = log, log
	if spec.Input != nil {
		command.Stdin = spec.Input
	}
	if spec.Held != nil {
		command.ExtraFiles = []*os.File{spec.Held}
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = errors.Join(command.Start(), log.Close())
	if err != nil {
		return Process{}, fmt.Errorf("failed to start %s: %w", spec.Name, err)
	}
	// The process is not reaped before Wait, so its beginning can be read
	// even if it has failed already.
	begin, err := beginning(command.Process.Pid)
	// A child that has ended stays in the process table until its parent waits for it.
	go func() { _ = command.Wait() }()
	if err != nil {
		return Process{}, fmt.Errorf("failed to identify %s: %w", spec.Name, err)
	}
	return Process{Name: spec.Name, PID: command.Process.Pid, Begin: begin, Log: spec.Log}, nil
}

// Alive reports whether the process runs.
func (p Process) Alive() bool {
	begin, err := beginning(p.PID)
	return err == nil && begin == p.Begin && !ended(p.PID)
}

// Ending reports whether the process has exited or was killed, and still has threads. It is alive until they have ended, too.
func (p Process) Ending() bool { return p.Alive() && ending(p.PID) }

// Signal sends a signal, and does nothing if the process has ended.
func (p Process) Signal(signal syscall.Signal) error {
	// The handle is opened before the identity is checked: where handles pin a process
	// (Linux), a process with a recycled PID cannot be signaled.
	handle, err := os.FindProcess(p.PID)
	if err != nil || !p.Alive() {
		return nil
	}
	defer func() { _ = handle.Release() }()
	if err := handle.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("failed to send %v to %s: %w", signal, p.Name, err)
	}
	return nil
}

// Stop sends a signal and waits until the process has ended; it fails if the process
// still runs when ctx ends.
func (p Process) Stop(ctx context.Context, signal syscall.Signal) error {
	if err := p.Signal(signal); err != nil {
		return err
	}
	return p.Wait(ctx)
}

// Wait waits until the process has ended; it fails if the process still runs when
// ctx ends.
func (p Process) Wait(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		return !p.Alive(), nil
	})
	if err != nil {
		return fmt.Errorf("failed to wait for %s (pid %d) to end: %w", p.Name, p.PID, err)
	}
	return nil
}
