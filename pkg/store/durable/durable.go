// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package durable writes files and the names in directories to disk, so that they survive a loss of power.
package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// SyncDir makes the creation, renaming and removal of files in a directory durable.
func SyncDir(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := errors.Join(directory.Sync(), directory.Close()); err != nil {
		return fmt.Errorf("sync directory %s: %w", path, err)
	}
	return nil
}

// WriteFile creates a file that only its owner can read, and makes its content durable. Its name is durable after SyncDir. An existing
// file is an error that matches fs.ErrExist. After another error the file may exist in part.
func WriteFile(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
