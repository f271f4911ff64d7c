// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"github.com/configbutler/slipstream/pkg/failpoint"
	"github.com/configbutler/slipstream/pkg/store/bolt/internal/journal"
)

// lockRetry is how often a lock is tried that another process holds.
const lockRetry = 20 * time.Millisecond

// storeFile is the bbolt file as the engine reaches it past bbolt: it locks the file,
// puts it back to its last checkpoint before bbolt looks at it, and syncs it.
type storeFile struct {
	journal.File

	path    string
	options Options
	opened  bool

	// recovered is what a journal has beyond the file, nil if it has nothing.
	recovered *journal.Recovered
}

// openStoreFile opens or creates the bbolt file at a path.
func openStoreFile(ctx context.Context, path string, options Options) (*storeFile, *bbolt.DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, nil, err
	}
	s := &storeFile{path: path, options: options}
	var db *bbolt.DB
	err := guarded(func() (err error) {
		db, err = s.openDatabase(ctx)
		return err
	})
	if err != nil {
		if s.File != nil {
			_ = s.File.Close() // bbolt has closed it, unless it has panicked: then it is locked.
		}
		return nil, nil, errors.Join(err, s.recovered.Close())
	}
	return s, db, nil
}

func (s *storeFile) openDatabase(ctx context.Context) (*bbolt.DB, error) {
	return bbolt.Open(s.path, 0o600, &bbolt.Options{
		Timeout:         s.options.LockTimeout,
		NoFreelistSync:  true,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: s.options.MaxFileBytes + 1, // Mapping it anew would wait for the pin of the last checkpoint.
		MaxSize:         s.options.MaxFileBytes,
		NoGrowSync:      true, // What the file grows by is synced with the rest.
		OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			return s.open(ctx, path, flag, mode)
		},
	})
}

// open is called by bbolt. Its first call is for the store, later ones are for copies of it.
func (s *storeFile) open(ctx context.Context, path string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag, mode)
	if err != nil || s.opened {
		return f, err
	}
	if err := s.prepare(ctx, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.opened = true
	return f, nil
}

func (s *storeFile) prepare(ctx context.Context, f *os.File) error {
	if err := lock(f, s.options.LockTimeout); err != nil {
		return err
	}
	s.File = s.options.disk.Attach(f)
	size, err := s.Size()
	if err != nil {
		return err
	}
	if size == 0 {
		return s.prepareNew()
	}
	pages, err := readMetaPages(s.File)
	if err != nil {
		return err
	}
	state, found := pages.newest()
	if !found {
		return damaged(errNoMeta.Error())
	}
	if !pages.needJournal() {
		return checkPages(ctx, s.File, state, size)
	}
	if s.recovered, err = readJournal(s.options.disk, s.path, pages); err != nil {
		return err
	}
	if err := checkPages(ctx, s.File, metaPage(s.recovered.State), size); err != nil {
		return err
	}
	failpoint.Reach("store-restoring")
	// The process may die anywhere from here on: the next one begins at the same checkpoint.
	if err := restoreState(s.File, metaPage(s.recovered.State)); err != nil {
		return err
	}
	// Transactions of before and of now share numbers. One meta page of each on disk could pass for those of a copy.
	return s.sync()
}

// prepareNew refuses to begin an empty store where one was lost.
func (s *storeFile) prepareNew() error {
	r, err := journal.Read(s.options.disk, s.path)
	if err != nil || r != nil {
		return errors.Join(fmt.Errorf("the file is missing or empty, but its journal %s is there: restore a backup of the store, or remove the journal to begin an empty one",
			journal.Paths(s.path)[0]), err, r.Close())
	}
	return s.options.disk.SyncFolder(filepath.Dir(s.path))
}

// readJournal reads the journal of a file that needs it. Its state is one of the file's.
func readJournal(disk journal.Disk, path string, pages metaPages) (*journal.Recovered, error) {
	r, err := journal.Read(disk, path)
	if err != nil {
		return nil, err
	}
	name := journal.Paths(path)[0]
	if r == nil {
		return nil, fmt.Errorf("%w: the store was not closed and %s is missing: put it back, or restore a backup of the store", journal.ErrDamaged, name)
	}
	newest, _ := pages.newest()
	var state metaPage
	copy(state[:], r.State)
	if len(r.State) != metaSize || !state.valid() || state.transaction() > newest.transaction() {
		return nil, errors.Join(fmt.Errorf("%w: the store is older than its journal %s: restore a backup of the store", journal.ErrDamaged, name), r.Close())
	}
	return r, nil
}

// lock takes the lock that bbolt takes: until the file is closed no other process may change it.
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

// state reads which state of the file bbolt has made valid last. Nothing may be
// written meanwhile.
func (s *storeFile) state() (metaPage, error) {
	pages, err := readMetaPages(s.File)
	if err != nil {
		return metaPage{}, err
	}
	newest, found := pages.newest()
	if !found {
		return metaPage{}, fmt.Errorf("reading the meta pages: %w", errCorrupt)
	}
	return newest, nil
}

// sync makes everything that bbolt has written durable. After an error it is
// unknown what is, whatever a later sync says.
func (s *storeFile) sync() error {
	if err := s.Sync(); err != nil {
		return fmt.Errorf("%w: %s: %w", journal.ErrSync, s.path, err)
	}
	return nil
}

// settle makes sure of a complete file before it is written to. The newer meta page of a copy may be where bbolt
// writes the older one, and what an end in the midst of closing left may not be on disk.
func (s *storeFile) settle() error {
	state, err := s.state()
	if err != nil {
		return err
	}
	return markClosed(s.File, state)
}

// close makes the state of the file durable and the file complete in itself, and
// removes the journal.
func (s *storeFile) close() error {
	state, err := s.state()
	if err != nil {
		return err
	}
	if state.flags() == flagClosed {
		return nil
	}
	if err := s.sync(); err != nil {
		return err
	}
	failpoint.Reach("store-synced")
	if err := markClosed(s.File, state); err != nil {
		return err
	}
	failpoint.Reach("store-closed")
	return journal.Remove(s.options.disk, s.path)
}
