// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// dataLink is the symbolic link in the path of all files of a volume.
const dataLink = "..data"

// writeFiles replaces the files of a volume atomically, as a kubelet does: readers see the old files or the new ones.
func writeFiles(folder string, files map[string][]byte, group int) error {
	version, err := os.MkdirTemp(folder, "..")
	if err != nil {
		return fmt.Errorf("failed to create a version of a volume: %w", err)
	}
	if err := os.Chmod(version, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := writeFile(filepath.Join(version, name), content, group); err != nil {
			return err
		}
	}
	before, err := os.Readlink(filepath.Join(folder, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unfinished := filepath.Join(folder, "..unfinished")
	if err := os.Symlink(filepath.Base(version), unfinished); err != nil {
		return err
	}
	if err := os.Rename(unfinished, filepath.Join(folder, dataLink)); err != nil {
		return err
	}
	if err := linkFiles(folder, files); err != nil || before == "" {
		return err
	}
	return os.RemoveAll(filepath.Join(folder, before))
}

// writeFile writes a file that only the group of the Pod may read.
func writeFile(path string, content []byte, group int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, content, 0o640); err != nil {
		return fmt.Errorf("failed to write a file of a volume: %w", err)
	}
	return os.Chown(path, 0, group)
}

// linkFiles links the files in the volume, and removes all other names.
func linkFiles(folder string, files map[string][]byte) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("failed to list a volume: %w", err)
	}
	for _, entry := range entries {
		if _, wanted := files[entry.Name()]; !wanted && entry.Type() == fs.ModeSymlink && entry.Name() != dataLink {
			err = errors.Join(err, os.Remove(filepath.Join(folder, entry.Name())))
		}
	}
	for name := range files {
		exists := func(entry os.DirEntry) bool { return entry.Name() == name }
		if !slices.ContainsFunc(entries, exists) {
			err = errors.Join(err, os.Symlink(filepath.Join(dataLink, name), filepath.Join(folder, name)))
		}
	}
	return err
}
