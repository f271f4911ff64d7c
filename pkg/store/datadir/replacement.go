// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/store/durable"
	"github.com/configbutler/slipstream/pkg/store/failpoint"
)

// CompleteReplacement replaces the old files with committed ones, and removes new files that were not committed. No process may
// have the files open. [Open] also does this, so that a replacement that was interrupted is completed.
func (d *Dir) CompleteReplacement(ctx context.Context) error {
	if err := os.RemoveAll(d.File(incomingName)); err != nil {
		return fmt.Errorf("removing files that were not committed: %w", err)
	}
	ready, err := findReady(d.path)
	if err != nil || ready == "" {
		return err
	}
	aside := d.File(asidePrefix + strings.TrimPrefix(filepath.Base(ready), readyPrefix))
	if err := d.install(ready, aside); err != nil {
		return fmt.Errorf("installing %s: %w", ready, err)
	}
	klog.FromContext(ctx).Info("Installed restored files", "directory", d.path, "before", aside)
	return nil
}

// findReady returns the folder of committed files, or an empty string.
func findReady(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("looking for restored files: %w", err)
	}
	for _, entry := range entries {
		if entry.IsDir() && strings.HasPrefix(entry.Name(), readyPrefix) {
			return filepath.Join(dir, entry.Name()), nil
		}
	}
	return "", nil
}

func (d *Dir) install(ready, aside string) error {
	if err := os.Mkdir(aside, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	files, err := os.ReadDir(ready)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := d.replace(file.Name(), ready, aside); err != nil {
			return err
		}
	}
	failpoint.Reach("restore-installed")
	// Removed last: as long as it is there the installation is not over.
	if err := os.Remove(ready); err != nil {
		return err
	}
	return durable.SyncDir(d.path)
}

// replace moves the present file of a name aside, with the files whose names begin with it, and then moves the new file
// to its place. Until the new file has been moved, a file in its place is the old one.
func (d *Dir) replace(name, ready, aside string) error {
	present, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, old := range present {
		if !strings.HasPrefix(old.Name(), name) {
			continue
		}
		if err := os.Rename(d.File(old.Name()), filepath.Join(aside, old.Name())); err != nil {
			return err
		}
	}
	// A power loss must not find the new file in place and the old one nowhere.
	if err := errors.Join(durable.SyncDir(aside), durable.SyncDir(d.path)); err != nil {
		return err
	}
	failpoint.Reach("restore-aside")
	if err := os.Rename(filepath.Join(ready, name), d.File(name)); err != nil {
		return err
	}
	if err := errors.Join(durable.SyncDir(d.path), durable.SyncDir(ready)); err != nil {
		return err
	}
	failpoint.Reach("restore-moved")
	return nil
}
