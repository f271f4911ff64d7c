// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"k8s.io/utils/clock"
)

// Verify checks a store file that no process has open: the pages of the file, and all content that the engine relies on.
// It reports problems to v and returns an error only if it could not check. It does not change the file.
func Verify(ctx context.Context, path string, v Verification) error {
	if err := verifyFile(ctx, path, v); err != nil {
		return fmt.Errorf("checking %s: %w", path, err)
	}
	return nil
}

func verifyFile(ctx context.Context, path string, v Verification) error {
	sound, err := verifyClosed(ctx, path, v)
	if err != nil || !sound {
		return err
	}
	db, err := openReadOnly(path)
	if err != nil {
		return err
	}
	err = guarded(func() error { return verifyContent(ctx, db, path, v) })
	if errors.Is(err, ErrDamaged) {
		v.Found(Finding{File: path, Problem: err.Error()})
		err = nil
	}
	return errors.Join(err, db.Close())
}

// verifyClosed checks the pages before bbolt opens the file: bbolt panics on damaged ones.
func verifyClosed(ctx context.Context, path string, v Verification) (sound bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, ErrLocked
		}
		return false, fmt.Errorf("locking: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	sound = true
	found := func(problem string) {
		sound = false
		v.Found(Finding{File: path, Problem: problem})
	}
	meta, err := readMetaPage(file)
	if errors.Is(err, errNoMeta) {
		found(err.Error())
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = verifyPages(ctx, file, meta, info.Size(), v, found)
	return sound, err
}

// verifyContent checks the records of a file whose pages are sound. It returns an error for a file of a newer format,
// which this version cannot check.
func verifyContent(ctx context.Context, db *bbolt.DB, path string, v Verification) error {
	return db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		switch {
		case meta == nil && tx.ID() <= 1: // The process ended before it created the buckets.
			return nil
		case meta != nil && getInt64(meta.Get(metaFormat)) > formatVersion:
			return checkFormat(meta)
		}
		return newVerifier(ctx, tx, path, v).run()
	})
}

// viewFile reads a file that no process writes to.
func viewFile(path string, read func(tx *bbolt.Tx) error) error {
	db, err := openReadOnly(path)
	if err != nil {
		return fmt.Errorf("opening store %s: %w", path, err)
	}
	err = guarded(func() error { return db.View(read) })
	return errors.Join(err, db.Close())
}

func openReadOnly(path string) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: DefaultLockTimeout, ReadOnly: true, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, ErrLocked
	}
	return db, err
}

// stillOptions are the options of an engine without background work.
func stillOptions() Options {
	return Options{CompactionInterval: -1, Clock: stillClock{}}
}

// stillClock is a clock that never advances.
type stillClock struct{ clock.RealClock }

var _ clock.WithTicker = stillClock{}

// Now returns a time before every expiry.
func (stillClock) Now() time.Time { return time.Unix(0, 0) }

// Since returns 0.
func (stillClock) Since(time.Time) time.Duration { return 0 }

// NewTimer returns a timer that never fires.
func (stillClock) NewTimer(time.Duration) clock.Timer { return stillTimer{} }

// NewTicker returns a ticker that never ticks.
func (stillClock) NewTicker(time.Duration) clock.Ticker { return stillTicker{} }

type stillTimer struct{}

func (stillTimer) C() <-chan time.Time      { return nil }
func (stillTimer) Stop() bool               { return true }
func (stillTimer) Reset(time.Duration) bool { return true }

type stillTicker struct{}

func (stillTicker) C() <-chan time.Time { return nil }
func (stillTicker) Stop()               {}
