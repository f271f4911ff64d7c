// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"github.com/configbutler/slipstream/pkg/store/durable"
)

// lockRetry is how often the engine retries to lock a file that another process has locked.
const lockRetry = 20 * time.Millisecond

// opener opens the bbolt file of an engine. It locks and checks the file before bbolt maps it.
type opener struct {
	options Options
	// file is the open file. bbolt closes it, unless bbolt panics.
	file *os.File
}

// openDatabase opens or creates the bbolt file at a path, and the directory that it is in.
func openDatabase(ctx context.Context, path string, options Options) (*bbolt.DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	o := &opener{options: options}
	var db *bbolt.DB
	err := guarded(func() (err error) {
		db, err = o.openDatabase(ctx, path)
		return err
	})
	if err != nil && o.file != nil {
		_ = o.file.Close() // It is closed already unless bbolt has panicked, and would stay locked then.
	}
	return db, err
}

func (o *opener) openDatabase(ctx context.Context, path string) (*bbolt.DB, error) {
	return bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         o.options.LockTimeout,
		NoFreelistSync:  true,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: o.options.MaxFileBytes + 1, // Mapping the file again would wait for all read transactions.
		MaxSize:         o.options.MaxFileBytes,
		NoSync:          o.options.noSync,
		OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			return o.open(ctx, path, flag, mode)
		},
	})
}

// open implements bbolt's OpenFile. The first call is for the store, later calls are for reading copies of it.
func (o *opener) open(ctx context.Context, path string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag, mode)
	if err != nil || o.file != nil {
		return f, err
	}
	if err := o.prepare(ctx, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	o.file = f
	return f, nil
}

// prepare locks a file and checks its pages. A new file is empty, and its name is on disk when prepare returns.
func (o *opener) prepare(ctx context.Context, f *os.File) error {
	if err := lock(f, o.options.LockTimeout); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return durable.SyncDir(filepath.Dir(f.Name()))
	}
	meta, err := readMetaPage(f)
	if errors.Is(err, errNoMeta) {
		return damaged(err.Error())
	}
	if err != nil {
		return err
	}
	if err := checkPages(ctx, f, meta, info.Size()); err != nil {
		return err
	}
	return syncMetaPage(f, meta)
}

// lock takes the lock that bbolt takes. No other process can open the file until it is closed.
func lock(f *os.File, timeout time.Duration) error {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	retry := time.NewTicker(lockRetry)
	defer retry.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) {
			return os.NewSyscallError("flock", err)
		}
		select {
		case <-retry.C:
		case <-deadline.C:
			return ErrLocked
		}
	}
}
