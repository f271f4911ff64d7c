// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Stores of the data directory.
const (
	// APIFile holds the objects.
	APIFile = "api.db"
	// WorkFile holds the working state.
	WorkFile = "work.db"
)

// lockFile is locked by whoever uses the directory.
const lockFile = "lock"

const (
	// lockTimeout is how long another process may take to let go.
	lockTimeout = time.Second
	lockRetry   = 20 * time.Millisecond
)

var (
	// ErrInUse says that another process has the directory.
	ErrInUse = errors.New("in use by another process: one process at a time may open it")

	// ErrNoStores says that a directory holds no stores.
	ErrNoStores = errors.New("there are no stores")
)

// Dir is a data directory that belongs to this process.
type Dir struct {
	path string
	lock *os.File
}

// Open makes a data directory this process's, once it is there. It finishes what was
// begun before and interrupted. It fails with [ErrInUse] while another process has it.
func Open(ctx context.Context, path string) (*Dir, error) {
	if err := makeFolder(path); err != nil {
		return nil, fmt.Errorf("making data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening data directory: %w", err)
	}
	d := &Dir{path: path, lock: lock}
	if err := d.acquire(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %s: %w", path, err), lock.Close())
	}
	if err := d.settle(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("finishing a restore in data directory %s: %w", path, err), lock.Close())
	}
	return d, nil
}

// makeFolder makes a folder and those above it that are missing, so that they outlive a power loss as what is written to
// them does.
func makeFolder(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(path)
	if err := makeFolder(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return sync(parent)
}

// OpenExisting is Open for a directory that holds stores already. It fails with
// [ErrNoStores] and makes nothing if it does not.
func OpenExisting(ctx context.Context, path string) (*Dir, error) {
	if err := findStores(path); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoStores, err)
	}
	return Open(ctx, path)
}

// findStores fails if a directory has neither stores nor files that are to be installed.
func findStores(path string) error {
	ready, err := findReady(path)
	if err != nil || ready != "" {
		return err
	}
	for _, name := range []string{APIFile, WorkFile} {
		if _, err := os.Stat(filepath.Join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dir) acquire(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, lockRetry, lockTimeout, true, func(context.Context) (bool, error) {
		err := syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		return err == nil, os.NewSyscallError("flock", err)
	})
	if ctx.Err() == nil && wait.Interrupted(err) {
		return ErrInUse
	}
	return err
}

// Path is the directory's.
func (d *Dir) Path() string { return d.path }

// File is the path of a file in the directory.
func (d *Dir) File(name string) string { return filepath.Join(d.path, name) }

// Close lets another process have the directory.
func (d *Dir) Close() error { return d.lock.Close() }

// sync makes what was created, renamed and removed in a folder outlive a power loss.
func sync(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("writing folder %s to disk: %w", folder, err)
	}
	return nil
}
