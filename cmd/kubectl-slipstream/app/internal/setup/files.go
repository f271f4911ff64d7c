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
	for _, each := range files {
		if err := each.write(folder); err != nil {
			return err
		}
	}
	return nil
}

// write creates the file. It replaces an existing one instead of writing to it, which could be a link or readable for others.
func (f outputFile) write(folder string) (err error) {
	path := filepath.Join(folder, f.name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode()) //nolint:gosec // the user names the folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = file.Write(f.content)
	return err
}
