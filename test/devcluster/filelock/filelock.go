// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filelock provides locks on files between processes. The kernel releases a lock when the process
// that holds it ends.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// retryInterval is the interval of the attempts in Acquire. flock(2) cannot be interrupted by
// a context, so Acquire polls.
const retryInterval = 100 * time.Millisecond

// ErrHeld is returned by Try while the lock is held.
var ErrHeld = errors.New("the lock is held by another")

// Lock is a lock that is held until Release.
type Lock struct {
	file *os.File
}

// Acquire locks the file at path, which it creates if necessary, and waits
// for another holder until ctx ends. Release does not remove the file:
// otherwise two processes could lock two files of the same name.
func Acquire(ctx context.Context, path string) (*Lock, error) {
	var lock *Lock
	err := wait.PollUntilContextCancel(ctx, retryInterval, true, func(context.Context) (held bool, err error) {
		lock, err = Try(path)
		if errors.Is(err, ErrHeld) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("failed to acquire a lock: %w", err)
	}
	return lock, nil
}

// Try locks the file at path like Acquire, but returns ErrHeld instead of waiting.
func Try(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("failed to open the lock file: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrHeld
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("failed to lock %s: %w", path, err), file.Close())
	}
	return &Lock{file: file}, nil
}

// File returns the locked file. A child process that inherits it holds the lock, too: the lock ends when all processes with the
// file have closed it.
func (l *Lock) File() *os.File { return l.file }

// Release releases the lock, except in the child processes that have inherited it.
func (l *Lock) Release() error {
	return l.file.Close()
}
