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
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/configbutler/slipstream/pkg/failpoint"
	"github.com/configbutler/slipstream/pkg/store/backup/archive"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
)

// RevisionGap is how far above everything that was handed out a restored store goes
// on. It is what etcd's recovery guide gives to "etcdutl snapshot restore
// --bump-revision", which means more than a week of 1 500 writes a second: it holds
// even when the store that is replaced cannot be read and the backup is days old.
const RevisionGap = 1_000_000_000

// Replaced is, by file name, what the stores that are to be replaced say about
// themselves. One that cannot be read is missing.
type Replaced map[string]bolt.FileState

// Target is the data directory that a backup is restored to.
type Target struct {
	// Dir is its path.
	Dir string
	// KeyFile is the name of the file with the encryption key, which a backup may hold.
	KeyFile string
	// Replaced asks its stores about themselves, once the backup is found to be good.
	Replaced func() Replaced
	// Check judges what the stores of the backup hold, once they are found to be sound. keyFile is where the key is
	// that the restored directory has: in the backup, or else in the directory, where it may be missing. An error
	// refuses the backup. Nil takes every one.
	Check func(ctx context.Context, stores Stores, keyFile string) error
}

// Staged is a restore that is decided.
type Staged struct {
	archive.Manifest
	// Aside is the folder that the replaced files are kept in.
	Aside string
}

// Stage checks a backup and decides that its stores take the place of those in a
// data directory. They do when the directory is opened next, or by
// datadir.Dir.Install. When it fails, nothing has changed.
//
// Only the process that owns the directory may call it. Writes that the replaced
// stores still answer stay in them.
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
		return writeSynced(ctx, in.File(file.Name), content)
	})
	if err != nil {
		return m, fmt.Errorf("reading the backup: %w", err)
	}
	return m, nil
}

// checkFiles refuses what is not a backup of a data directory.
func checkFiles(m archive.Manifest, keyFile string) error {
	var stores []string
	for _, store := range m.Stores {
		stores = append(stores, store.Name)
	}
	if want := []string{datadir.APIFile, datadir.WorkFile}; !slices.Equal(stores, want) {
		return fmt.Errorf("it holds the stores %q and should hold %q", stores, want)
	}
	for _, file := range m.Files {
		if file.Name != keyFile {
			return fmt.Errorf("it holds the unknown file %q", file.Name)
		}
	}
	return nil
}

func writeSynced(ctx context.Context, path string, content io.Reader) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(file, contextReader{ctx: ctx, Reader: content}); err != nil {
		return err
	}
	return file.Sync()
}

// contextReader ends with a context.
type contextReader struct {
	ctx context.Context //nolint:containedctx // It lives as long as one call of writeSynced.
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// verify checks a store file, and that it is the one that the manifest means.
func verify(ctx context.Context, path string, store archive.Store) error {
	state, err := bolt.Inspect(ctx, path)
	if err != nil {
		return err
	}
	if got := describe(store.Name, state); got != store {
		return fmt.Errorf("it is %+v, and %+v by the manifest", got, store)
	}
	return nil
}

// check asks for the judgement of the target.
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

// succeed makes a store file the successor of the one that it takes the place of.
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

// raise makes a store go on at a revision.
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
