// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/configbutler/slipstream/pkg/store/durable"
	"github.com/configbutler/slipstream/pkg/store/failpoint"
)

const (
	// defragmentedSuffix is the suffix of the copy during defragmentation. A copy left by a crash is overwritten.
	defragmentedSuffix = ".defrag"

	// copiedAtOnce bounds the memory of the copy's transactions, in bytes.
	copiedAtOnce = 1 << 20

	// spareBytes is what must be free on the disk beyond the size of the data: a new
	// file has a few pages more than data.
	spareBytes = 1 << 20
)

// Sizes are those of a file before and after it was defragmented, in bytes.
type Sizes struct {
	Before, After int64
}

// Defragment returns the unused space of a store file to the disk. No process may have the file open. The content is
// copied to a new file next to it, which is compared with the old one, synced, and then renamed over it; until then, the
// old file remains the store, whatever happens. It returns [ErrDiskFull] if the copy does not fit on the disk.
func Defragment(ctx context.Context, path string) (Sizes, error) {
	sizes, err := defragment(ctx, path)
	if err != nil {
		return Sizes{}, fmt.Errorf("defragmenting %s: %w", path, err)
	}
	return sizes, nil
}

func defragment(ctx context.Context, path string) (sizes Sizes, err error) {
	if err := checkExists(path); err != nil {
		return sizes, err
	}
	// The open engine keeps other processes from opening the file.
	e, err := Open(ctx, path, stillOptions())
	if err != nil {
		return sizes, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if sizes.Before, err = fileSize(path); err != nil {
		return sizes, err
	}
	if err := checkCopyFits(e.reader); err != nil {
		return sizes, err
	}
	if err := replaceFile(ctx, e.db, path); err != nil {
		return sizes, err
	}
	sizes.After, err = fileSize(path)
	return sizes, err
}

// checkExists returns an error for a missing file, which Open would create.
func checkExists(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Size() == 0 {
		err = &fs.PathError{Op: "open", Path: path, Err: errNoMeta}
	}
	return err
}

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// checkCopyFits returns an error if a copy of the data would not fit on the disk.
func checkCopyFits(r *reader) error {
	_, used, err := r.size()
	if err != nil {
		return err
	}
	folder := filepath.Dir(r.path())
	free, _, err := volumeOf(folder)
	if err != nil {
		return fmt.Errorf("reading the free space of %s: %w", folder, err)
	}
	if need := used + spareBytes; free < need {
		return fmt.Errorf("%w: %d bytes are free in %s, and the copy needs up to %d", ErrDiskFull, free, folder, need)
	}
	return nil
}

// replaceFile copies the store to a new file and renames it over the old one. The copy stays locked until then, so that
// no process opens an incomplete one.
func replaceFile(ctx context.Context, source *bbolt.DB, path string) (err error) {
	beside := path + defragmentedSuffix
	if err := os.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	target, err := bbolt.Open(beside, 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, target.Close())
		if err != nil {
			// Gone already if it has taken the old file's place.
			_ = os.Remove(beside)
		}
	}()
	if err := copyStore(ctx, target, source); err != nil {
		return err
	}
	failpoint.Reach("defragmented-copied")
	if err := os.Rename(beside, path); err != nil {
		return err
	}
	failpoint.Reach("defragmented-renamed")
	return durable.SyncDir(filepath.Dir(path))
}

// copyStore copies a store to an empty file, syncs it, and verifies it.
func copyStore(ctx context.Context, target, source *bbolt.DB) error {
	target.NoSync = true                // There is one sync, at the end.
	target.AllocSize = os.Getpagesize() // The file is to be no larger than its content.
	if err := bbolt.Compact(target, source, copiedAtOnce); err != nil {
		return errors.Join(fmt.Errorf("copying: %w", asDiskFull(err)), ctx.Err())
	}
	if err := target.Sync(); err != nil {
		return fmt.Errorf("syncing the copy: %w", asDiskFull(err))
	}
	return source.View(func(from *bbolt.Tx) error {
		return target.View(func(to *bbolt.Tx) error {
			for problem := range to.Check() {
				return fmt.Errorf("checking the copy: %w", problem)
			}
			return compareBuckets(ctx, from.Cursor(), to.Cursor(), from.Bucket, to.Bucket)
		})
	})
}

// errCopyDiffers is returned if a copy differs from its source.
var errCopyDiffers = errors.New("the copy differs from the store")

// compareBuckets returns an error unless two buckets, or roots, have the same content.
func compareBuckets(ctx context.Context, a, b *bbolt.Cursor, inA, inB func(name []byte) *bbolt.Bucket) error {
	keyA, valueA := a.First()
	keyB, valueB := b.First()
	for ; keyA != nil || keyB != nil; keyA, valueA = a.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !bytes.Equal(keyA, keyB) || (valueA == nil) != (valueB == nil) || !bytes.Equal(valueA, valueB) {
			return fmt.Errorf("%w at %q", errCopyDiffers, keyA)
		}
		if valueA == nil {
			nestedA, nestedB := inA(keyA), inB(keyB)
			if err := compareBuckets(ctx, nestedA.Cursor(), nestedB.Cursor(), nestedA.Bucket, nestedB.Bucket); err != nil {
				return err
			}
		}
		keyB, valueB = b.Next()
	}
	return nil
}

// asDiskFull adds [ErrDiskFull] to an error caused by a lack of space. bbolt does not wrap the errors of growing its
// file: these are recognised by their text.
func asDiskFull(err error) error {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, bolterrors.ErrMaxSizeReached} {
		if errors.Is(err, full) || err != nil && strings.HasSuffix(err.Error(), full.Error()) {
			return fmt.Errorf("%w: %w", ErrDiskFull, err)
		}
	}
	return err
}
