// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filelock answers which of several processes may go on: the one that holds
// the lock on a file. The kernel lets go of the lock when its holder dies.
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

// retryInterval is how often a waiting Acquire asks again. flock(2) cannot be woken by
// a context, so waiting is asking.
const retryInterval = 100 * time.Millisecond

// Lock is a lock that is held until Release.
type Lock struct {
	file *os.File
}

// Acquire takes the lock on the file at path, which it makes if need be, and waits
// for another holder until ctx ends. The file stays when the lock is released:
// removing it would let two holders lock two files of the same name.
func Acquire(ctx context.Context, path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock file: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, retryInterval, true, func(context.Context) (bool, error) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
	}
	return &Lock{file: file}, nil
}

// Release lets the next one go on.
func (l *Lock) Release() error {
	return l.file.Close()
}
