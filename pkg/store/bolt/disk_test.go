// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"os"

	"github.com/configbutler/slipstream/pkg/store/bolt/internal/journal"
)

// unsyncedDisk makes writes faster and no longer durable, for tests that never lose power.
type unsyncedDisk struct{ journal.OS }

func (d unsyncedDisk) Open(path string, create bool) (journal.File, error) {
	f, err := d.OS.Open(path, create)
	return unsyncedFile{f}, err
}

func (d unsyncedDisk) Attach(f *os.File) journal.File { return unsyncedFile{d.OS.Attach(f)} }

func (unsyncedDisk) SyncFolder(string) error { return nil }

type unsyncedFile struct{ journal.File }

func (unsyncedFile) Sync() error { return nil }
