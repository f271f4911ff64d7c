// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/configbutler/slipstream/pkg/store/durable"
)

// FileName is the name of the file in a [Folder].
const FileName = "encryption.yaml"

// File is the user's own configuration. It is never written.
type File struct {
	Path string
}

var _ Origin = File{}

// String returns the path.
func (f File) String() string { return f.Path }

// Read returns the content of the file.
func (f File) Read(context.Context) ([]byte, error) {
	content, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", f.Path, ErrAbsent)
	}
	return content, err
}

func (f File) path([]byte) (string, func(), error) { return f.Path, func() {}, nil }

// Folder stores a configuration in [FileName] of a folder that a single server uses.
type Folder struct {
	Path string
}

var _ Home = Folder{}

// String returns the path of the file.
func (f Folder) String() string { return filepath.Join(f.Path, FileName) }

func (f Folder) path([]byte) (string, func(), error) { return f.String(), func() {}, nil }

func (f Folder) shared() bool { return false }

// Permissions of the file.
const (
	private = 0o600
	ofGroup = 0o070
	ofWorld = 0o007
)

// Read returns the content of the file, and fails if it is readable by all users. A volume that is mounted with an
// fsGroup gives its files to the group of the pod on each mount, so permissions of the group are removed rather than
// rejected.
func (f Folder) Read(context.Context) ([]byte, error) {
	info, err := os.Stat(f.String())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", f, ErrAbsent)
	case err != nil:
		return nil, err
	case info.Mode()&ofWorld != 0:
		return nil, fmt.Errorf("%s has mode %04o, so all users can read the keys: run chmod 600 on it, and "+
			"slipstream store rotate-key if another user may have read it", f, info.Mode().Perm())
	case info.Mode()&ofGroup != 0:
		if err := os.Chmod(f.String(), private); err != nil {
			return nil, fmt.Errorf("%s has mode %04o, so its group can read the keys, and the mode cannot be changed to 0600: %w",
				f, info.Mode().Perm(), err)
		}
	}
	return os.ReadFile(f.String())
}

// Change replaces the file atomically. It is durable when Change returns.
func (f Folder) Change(ctx context.Context, change func([]byte) ([]byte, error)) error {
	folder, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	// The command that rotates and the server that retires keys must not undo each other's change. Closing releases the lock.
	defer func() { _ = folder.Close() }()
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", f.Path, err)
	}
	content, err := f.Read(ctx)
	if err != nil && !errors.Is(err, ErrAbsent) {
		return err
	}
	changed, err := change(content)
	if err != nil || bytes.Equal(changed, content) {
		return err
	}
	return f.replace(changed)
}

// replace replaces the file. The caller holds the lock, so no other process uses the temporary name.
func (f Folder) replace(content []byte) error {
	beside := filepath.Join(f.Path, "."+FileName+".new")
	if err := os.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := durable.WriteFile(beside, bytes.NewReader(content)); err != nil {
		return err
	}
	if err := os.Rename(beside, f.String()); err != nil {
		return err
	}
	return durable.SyncDir(f.Path)
}
