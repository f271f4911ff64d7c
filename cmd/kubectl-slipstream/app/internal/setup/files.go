// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// newSuffix ends the name of a file until all files are written.
const newSuffix = ".new"

// outputFile is a file to write.
type outputFile struct {
	name    string
	content []byte
	// private is whether only the user may read it.
	private bool
}

// mode returns the permissions of the file.
func (f outputFile) mode() fs.FileMode {
	if f.private {
		return 0o600
	}
	return 0o644
}

// writeFiles writes files into a folder, which it creates for the user alone if it is missing. Without force it writes nothing if one of
// the files exists.
func writeFiles(folder string, files []outputFile, force bool) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	var existing []string
	for _, each := range files {
		if _, err := os.Lstat(filepath.Join(folder, each.name)); err == nil {
			existing = append(existing, each.name)
		}
	}
	if len(existing) > 0 && !force {
		slices.Sort(existing)
		return fmt.Errorf("%s has %s already: --force replaces them", folder, strings.Join(existing, ", "))
	}
	return replaceFiles(folder, files)
}

// replaceFiles writes all files beside their places before it moves the first there, so that an error or a crash leaves no certificate
// without its key. Files are replaced instead of written to, because they could be links or readable for others.
func replaceFiles(folder string, files []outputFile) (err error) {
	var written []string
	defer func() {
		if err != nil {
			for _, path := range written {
				_ = os.Remove(path) // Those that were moved are not there any more.
			}
		}
	}()
	for _, each := range files {
		path := filepath.Join(folder, each.name) + newSuffix
		written = append(written, path)
		if err := each.write(path); err != nil {
			return err
		}
	}
	for _, path := range written {
		if err := os.Rename(path, strings.TrimSuffix(path, newSuffix)); err != nil {
			return err
		}
	}
	return nil
}

// write creates the file. It removes one that an earlier command has left.
func (f outputFile) write(path string) (err error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode()) //nolint:gosec // the user names the folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err = file.Write(f.content); err != nil {
		return err
	}
	return file.Sync()
}
