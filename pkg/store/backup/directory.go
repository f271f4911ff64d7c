// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
)

// ErrUnfinished is returned for a restore that was committed but not completed. The next process that opens the directory
// completes it.
var ErrUnfinished = errors.New("the restore is committed, and the next start of the server or the next restore finishes it")

// WriteDirectory writes a backup of a data directory. No server may run on the directory.
func WriteDirectory(ctx context.Context, dir *datadir.Dir, w io.Writer, options Options) (err error) {
	stores, err := openStores(ctx, dir.File)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.close()) }()
	return Write(w, stores, options)
}

// openStores opens the stores of a folder. file returns their paths.
func openStores(ctx context.Context, file func(name string) string) (stores Stores, err error) {
	options := bolt.Options{CompactionInterval: -1}
	if stores.API, err = bolt.Open(ctx, file(datadir.APIFile), options); err != nil {
		return stores, err
	}
	if stores.Work, err = bolt.Open(ctx, file(datadir.WorkFile), options); err != nil {
		return stores, errors.Join(err, stores.API.Close())
	}
	return stores, nil
}

func (s Stores) close() error { return errors.Join(s.Work.Close(), s.API.Close()) }

// RestoreDirectory replaces the stores of a data directory with those of a backup. The directory may be empty, and no
// server may run on it. Dir and Replaced of the target are set to those of the directory. If it fails, nothing has
// changed, unless the error is [ErrUnfinished].
func RestoreDirectory(ctx context.Context, dir *datadir.Dir, target Target, r io.Reader, now time.Time) (Staged, error) {
	target.Dir = dir.Path()
	target.Replaced = func() Replaced { return readReplaced(ctx, dir) }
	staged, err := Stage(ctx, target, r, now)
	if err != nil {
		return staged, err
	}
	if err := dir.CompleteReplacement(context.WithoutCancel(ctx)); err != nil {
		return staged, fmt.Errorf("%w: %w", ErrUnfinished, err)
	}
	return staged, nil
}

// readReplaced returns the state of the stores of a directory. Stores that cannot be read are omitted: they may be the
// reason for the restore.
func readReplaced(ctx context.Context, dir *datadir.Dir) Replaced {
	replaced := Replaced{}
	for _, name := range []string{datadir.APIFile, datadir.WorkFile} {
		if _, err := os.Stat(dir.File(name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		state, err := readState(ctx, dir.File(name))
		if err != nil {
			klog.FromContext(ctx).Error(err, "The present store cannot be read, the restored store continues above the revision of the backup only")
			continue
		}
		replaced[name] = state
	}
	return replaced
}

// readState opens a store and returns its state.
func readState(ctx context.Context, path string) (state bolt.FileState, err error) {
	engine, err := bolt.Open(ctx, path, bolt.Options{CompactionInterval: -1})
	if err != nil {
		return state, err
	}
	return StateOf(engine), engine.Close()
}

// StateOf returns the state of an open store, without its size.
func StateOf(engine *bolt.Engine) bolt.FileState {
	return bolt.FileState{
		Identity: engine.Identity(), Revision: engine.Revision(), CompactRevision: engine.CompactRevision(),
	}
}
