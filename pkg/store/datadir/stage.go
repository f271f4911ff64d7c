// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/configbutler/slipstream/pkg/store/durable"
	"github.com/configbutler/slipstream/pkg/store/failpoint"
)

// Folders of the directory.
const (
	incomingName = "incoming"
	readyPrefix  = "ready-"
	asidePrefix  = "before-restore-"

	// timeFormat has no colons, which some file systems do not allow.
	timeFormat = "20060102T150405.000Z"
)

// ErrPending is returned if committed files have not been installed yet.
var ErrPending = errors.New("another restore waits for the server to start again")

// Incoming is a folder with files that are to replace those in the directory.
type Incoming struct {
	dir  string
	path string
}

// Stage creates a folder for new files in a directory. Only the process that owns the directory may call it, and not
// concurrently. It returns [ErrPending] if committed files have not been installed yet.
func Stage(dir string) (*Incoming, error) {
	ready, err := findReady(dir)
	if err != nil {
		return nil, err
	}
	if ready != "" {
		return nil, ErrPending
	}
	in := &Incoming{dir: dir, path: filepath.Join(dir, incomingName)}
	if err := os.RemoveAll(in.path); err != nil {
		return nil, fmt.Errorf("removing what an earlier restore left: %w", err)
	}
	if err := os.Mkdir(in.path, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder for the restored files: %w", err)
	}
	failpoint.Reach("restore-begun")
	return in, nil
}

// File returns the path of a file in the folder.
func (in *Incoming) File(name string) string { return filepath.Join(in.path, name) }

// Commit commits that the files replace the old ones, which will be moved to the returned folder. The files must be
// durable. If it fails, nothing is committed, and Discard must still be called.
func (in *Incoming) Commit(now time.Time) (aside string, err error) {
	if err := durable.SyncDir(in.path); err != nil {
		return "", err
	}
	failpoint.Reach("restore-staged")
	stamp := now.UTC().Format(timeFormat)
	ready := filepath.Join(in.dir, readyPrefix+stamp)
	if err := os.Rename(in.path, ready); err != nil {
		return "", fmt.Errorf("deciding on the restored files: %w", err)
	}
	if err := durable.SyncDir(in.dir); err != nil {
		// After an error, the next Open must not find the files committed.
		return "", errors.Join(err, os.Rename(ready, in.path))
	}
	failpoint.Reach("restore-decided")
	return filepath.Join(in.dir, asidePrefix+stamp), nil
}

// Discard removes the folder, unless it was committed.
func (in *Incoming) Discard() error { return os.RemoveAll(in.path) }
