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

// Verify checks a store file that no process has open: the pages of the file, and
// all that the engine relies on in them. It reports what is wrong and returns an
// error only when it could not check. The file stays as it is, but for what opening
// it always does: changes that a crash left to be completed are completed.
func Verify(ctx context.Context, path string, v Verification) error {
	sound, err := verifyClosed(ctx, path, v)
	if err != nil {
		return fmt.Errorf("checking %s: %w", path, err)
	}
	if !sound {
		return nil
	}
	db, closeStore, err := openToVerify(ctx, path, v)
	if err != nil {
		return fmt.Errorf("checking %s: %w", path, err)
	}
	return errors.Join(verifyContent(ctx, db, path, v), closeStore())
}

// verifyClosed checks the pages before anything opens the file: bbolt dies of those
// that are not what they should be.
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
	err = verifyPages(ctx, file, info.Size(), v, func(problem string) {
		sound = false
		v.Found(Finding{File: path, Problem: problem})
	})
	return sound, err
}

// openToVerify opens the store as a server does, so that what a crash left to be
// completed is completed, or at least its file if the store does not open.
func openToVerify(ctx context.Context, path string, v Verification) (db *bbolt.DB, closeStore func() error, err error) {
	newer, err := hasNewerFormat(path)
	if err != nil {
		return nil, nil, err
	}
	if newer != nil {
		return nil, nil, newer
	}
	e, err := Open(ctx, path, stillOptions())
	if err == nil {
		return e.db, e.Close, nil
	}
	if errors.Is(err, ErrLocked) {
		return nil, nil, err
	}
	v.Found(Finding{File: path, Problem: fmt.Sprintf("the store does not open: %v", err)})
	db, err = openReadOnly(path)
	if err != nil {
		return nil, nil, err
	}
	return db, db.Close, nil
}

// hasNewerFormat tells, as newer, why this version cannot judge the file, if it cannot.
func hasNewerFormat(path string) (newer, err error) {
	db, err := openReadOnly(path)
	if err != nil {
		return nil, err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		if meta := tx.Bucket(bucketMeta); meta != nil && getInt64(meta.Get(metaFormat)) > formatVersion {
			newer = checkFormat(meta)
		}
		return nil
	})
	return newer, errors.Join(err, db.Close())
}

func openReadOnly(path string) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: DefaultLockTimeout, ReadOnly: true, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, ErrLocked
	}
	return db, err
}

// verifyContent checks what is in a file whose pages are sound.
func verifyContent(ctx context.Context, db *bbolt.DB, path string, v Verification) error {
	return db.View(func(tx *bbolt.Tx) error {
		v.Checking("page tree", 0)
		for problem := range tx.Check() {
			v.Found(Finding{File: path, Problem: problem.Error()})
		}
		return newVerifier(ctx, tx, path, v).run()
	})
}

// stillOptions are those of an engine that does nothing by itself.
func stillOptions() Options {
	return Options{CompactionInterval: -1, Clock: stillClock{}}
}

// stillClock is a clock by which it is never time for anything.
type stillClock struct{ clock.RealClock }

var _ clock.WithTicker = stillClock{}

// Now is before every expiry.
func (stillClock) Now() time.Time { return time.Unix(0, 0) }

// Since is no time.
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
