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

	"github.com/configbutler/slipstream/pkg/store/durable"
)

// Stores of the data directory.
const (
	// APIFile holds the objects.
	APIFile = "api.db"
	// WorkFile holds the working state.
	WorkFile = "work.db"
)

// lockFile is locked by the process that uses the directory.
const lockFile = "lock"

const (
	// lockTimeout is how long Open waits for another process to release the lock.
	lockTimeout = time.Second
	lockRetry   = 20 * time.Millisecond
)

var (
	// ErrInUse is returned if another process has the directory open.
	ErrInUse = errors.New("in use by another process: one process at a time may open it")

	// ErrNoStores is returned if a directory has no stores.
	ErrNoStores = errors.New("there are no stores")
)

// Dir is a data directory that this process has locked.
type Dir struct {
	path string
	lock *os.File
}

// Open creates a data directory if it does not exist, and locks it. It completes an interrupted replacement of files. It
// returns [ErrInUse] if another process has the directory open.
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
	if err := d.CompleteReplacement(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("finishing a restore in data directory %s: %w", path, err), lock.Close())
	}
	return d, nil
}

// makeFolder creates a folder and its missing parents, durably.
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
	return durable.SyncDir(parent)
}

// OpenExisting opens a directory that has stores. If it has none, it returns [ErrNoStores] and creates nothing.
func OpenExisting(ctx context.Context, path string) (*Dir, error) {
	if err := findStores(path); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoStores, err)
	}
	return Open(ctx, path)
}

// findStores returns an error if a directory has neither stores nor committed files to be installed.
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

// Path returns the path of the directory.
func (d *Dir) Path() string { return d.path }

// File returns the path of a file in the directory.
func (d *Dir) File(name string) string { return filepath.Join(d.path, name) }

// Close releases the lock.
func (d *Dir) Close() error { return d.lock.Close() }
