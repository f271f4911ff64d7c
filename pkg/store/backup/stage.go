// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/configbutler/slipstream/pkg/store/backup/archive"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
	"github.com/configbutler/slipstream/pkg/store/durable"
	"github.com/configbutler/slipstream/pkg/store/failpoint"
)

// RevisionGap is the distance between the highest revision that was handed out and the first one of a restored store. It
// is the value that etcd's recovery guide recommends for "etcdutl snapshot restore --bump-revision", and exceeds a week
// of 1 500 writes a second: it suffices even if the replaced store cannot be read and the backup is days old.
const RevisionGap = 1_000_000_000

// Replaced has the states of the stores that are to be replaced, by file name. Stores that cannot be read are missing.
type Replaced map[string]bolt.FileState

// Target is the data directory to which a backup is restored.
type Target struct {
	// Dir is the path of the directory.
	Dir string
	// KeyFile is the name of the file with the encryption key, which a backup may hold.
	KeyFile string
	// Replaced returns the states of the directory's stores. It is called after the backup has been verified.
	Replaced func() Replaced
	// Check validates the content of the backup's stores after their files have been verified. keyFile is the path of the
	// encryption key that the restored directory will have: in the backup, or else in the directory, where it may be
	// missing. An error rejects the backup. Nil accepts every backup.
	Check func(ctx context.Context, stores Stores, keyFile string) error
}

// Staged is a committed restore.
type Staged struct {
	archive.Manifest
	// Aside is the folder to which the replaced files are moved.
	Aside string
}

// Stage verifies a backup and commits that its stores replace those of a data directory. They are installed when the
// directory is opened next, or by datadir.Dir.CompleteReplacement. If it fails, nothing has changed.
//
// Only the process that owns the directory may call it. Writes that the replaced stores acknowledge afterwards remain in
// them and are not in the restored ones.
func Stage(ctx context.Context, target Target, r io.Reader, now time.Time) (staged Staged, err error) {
	in, err := datadir.Stage(target.Dir)
	if err != nil {
		return staged, err
	}
	defer func() { err = errors.Join(err, in.Discard()) }()
	if staged.Manifest, err = unpack(ctx, in, r, target.KeyFile); err != nil {
		return staged, err
	}
	failpoint.Reach("restore-unpacked")
	for _, store := range staged.Stores {
		if err := verify(ctx, in.File(store.Name), store); err != nil {
			return staged, fmt.Errorf("checking %s of the backup: %w", store.Name, err)
		}
	}
	if err := target.check(ctx, in, staged.Manifest); err != nil {
		return staged, err
	}
	replaced := target.Replaced()
	for _, store := range staged.Stores {
		if err := succeed(ctx, in.File(store.Name), store, replaced); err != nil {
			return staged, fmt.Errorf("preparing %s of the backup: %w", store.Name, err)
		}
		failpoint.Reach("restore-raised")
	}
	staged.Aside, err = in.Commit(now)
	return staged, err
}

// unpack writes the files of a backup to the folder.
func unpack(ctx context.Context, in *datadir.Incoming, r io.Reader, keyFile string) (archive.Manifest, error) {
	begin := func(m archive.Manifest) error { return checkFiles(m, keyFile) }
	m, err := archive.Read(r, begin, func(file archive.File, content io.Reader) error {
		return durable.WriteFile(in.File(file.Name), contextReader{ctx: ctx, Reader: content})
	})
	if err != nil {
		return m, fmt.Errorf("reading the backup: %w", err)
	}
	return m, nil
}

// checkFiles returns an error if a manifest does not list exactly the files of a data directory's backup.
func checkFiles(m archive.Manifest, keyFile string) error {
	var stores []string
	for _, store := range m.Stores {
		stores = append(stores, store.Name)
	}
	if want := []string{datadir.APIFile, datadir.WorkFile}; !slices.Equal(stores, want) {
		return fmt.Errorf("it has the stores %q, and must have %q", stores, want)
	}
	for _, file := range m.Files {
		if file.Name != keyFile {
			return fmt.Errorf("it has the unknown file %q", file.Name)
		}
	}
	return nil
}

// contextReader is a reader that fails once its context is done.
type contextReader struct {
	ctx context.Context //nolint:containedctx // It lives as long as one call of WriteFile.
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// verify checks a store file, and that its state is the one in the manifest.
func verify(ctx context.Context, path string, store archive.Store) error {
	state, err := bolt.Inspect(ctx, path)
	if err != nil {
		return err
	}
	if got := describe(store.Name, state); got != store {
		return fmt.Errorf("it is %+v, and the manifest says %+v", got, store)
	}
	return nil
}

// check runs the target's Check on the stores of the backup.
func (t Target) check(ctx context.Context, in *datadir.Incoming, m archive.Manifest) (err error) {
	if t.Check == nil {
		return nil
	}
	stores, err := openStores(ctx, in.File)
	if err != nil {
		return fmt.Errorf("opening the stores of the backup: %w", err)
	}
	defer func() { err = errors.Join(err, stores.close()) }()
	keyFile := filepath.Join(t.Dir, t.KeyFile)
	if len(m.Files) > 0 {
		keyFile = in.File(t.KeyFile)
	}
	return t.Check(ctx, stores, keyFile)
}

// succeed raises the revision of a store file and gives it the identity of the store that it replaces.
func succeed(ctx context.Context, path string, store archive.Store, replaced Replaced) error {
	old, known := replaced[store.Name]
	if !known {
		old.Identity = newIdentity()
	}
	if err := raise(ctx, path, max(old.Revision, store.Revision)+RevisionGap); err != nil {
		return err
	}
	return bolt.Adopt(path, old.Identity)
}

// raise advances a store to a revision.
func raise(ctx context.Context, path string, revision int64) (err error) {
	engine, err := bolt.Open(ctx, path, bolt.Options{CompactionInterval: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	return engine.Advance(ctx, revision)
}

func newIdentity() uint64 {
	var identity [8]byte
	_, _ = rand.Read(identity[:]) // Never fails; the process ends if there is no randomness.
	return binary.BigEndian.Uint64(identity[:])
}
