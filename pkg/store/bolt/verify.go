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

	"github.com/configbutler/slipstream/pkg/store/bolt/internal/journal"
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
	findings, report := 0, v.Found
	v.Found = func(f Finding) {
		findings++
		report(f)
	}
	db, closeStore, opened, err := openToVerify(ctx, path, v)
	if err != nil {
		return fmt.Errorf("checking %s: %w", path, err)
	}
	err = guarded(func() error { return verifyContent(ctx, db, path, v) })
	if errors.Is(err, ErrDamaged) {
		opened, err = err, nil
	}
	if errors.Is(opened, ErrDamaged) && findings == 0 { // Otherwise that is among the findings.
		v.Found(Finding{File: path, Problem: opened.Error()})
	}
	return errors.Join(err, closeStore())
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
	found := func(problem string) {
		sound = false
		v.Found(Finding{File: path, Problem: problem})
	}
	root, err := rootToVerify(file, path)
	if errors.Is(err, errNoMeta) || errors.Is(err, journal.ErrDamaged) {
		found(err.Error())
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = verifyPages(ctx, file, root, info.Size(), v, found)
	return sound, err
}

// rootToVerify leads to the pages that opening the file begins with: those of the last
// checkpoint if it was not closed. What was written since need not be on disk.
func rootToVerify(file *os.File, path string) (metaPage, error) {
	pages, err := readMetaPages(file)
	if err != nil {
		return metaPage{}, err
	}
	if !pages.needJournal() {
		newest, found := pages.newest()
		if !found {
			err = errNoMeta
		}
		return newest, err
	}
	r, err := readJournal(journal.OS{}, path, pages)
	if err != nil {
		return metaPage{}, err
	}
	return metaPage(r.State), r.Close()
}

// openToVerify opens the store as a server does, so that what a crash left to be
// completed is completed, or at least its file if the store does not open. An error of
// [ErrDamaged] that opening ended with is opened.
func openToVerify(ctx context.Context, path string, v Verification) (db *bbolt.DB, closeStore func() error, opened, err error) {
	if err := checkReadable(path); err != nil {
		return nil, nil, nil, err
	}
	e, opened := Open(ctx, path, stillOptions())
	switch {
	case opened == nil:
		return e.db, e.Close, nil, nil
	case errors.Is(opened, ErrLocked) || errors.Is(opened, ErrDiskFull): // Neither is damage.
		return nil, nil, nil, opened
	case !errors.Is(opened, ErrDamaged):
		v.Found(Finding{File: path, Problem: fmt.Sprintf("the store does not open: %v", opened)})
	}
	db, err = openReadOnly(path)
	if err != nil {
		return nil, nil, nil, err
	}
	return db, db.Close, opened, nil
}

// checkReadable fails if this version cannot judge a file, because it has a newer format. Only opening a file that was
// not closed tells.
func checkReadable(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	pages, err := readMetaPages(file)
	if err := errors.Join(err, file.Close()); err != nil || pages.needJournal() {
		return err
	}
	return viewFile(path, func(tx *bbolt.Tx) error {
		if meta := tx.Bucket(bucketMeta); meta != nil && getInt64(meta.Get(metaFormat)) > formatVersion {
			return checkFormat(meta)
		}
		return nil
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

// verifyContent checks what is in a file whose pages are sound.
func verifyContent(ctx context.Context, db *bbolt.DB, path string, v Verification) error {
	return db.View(func(tx *bbolt.Tx) error {
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
