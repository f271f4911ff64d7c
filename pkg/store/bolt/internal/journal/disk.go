// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"io"
	"os"
)

// ErrSync says that a sync failed. What the disk holds of the file is unknown from
// then on, and a sync that succeeds later does not tell either.
var ErrSync = errors.New("sync failed")

// File is what is needed of an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer

	// Size is the length of the file in bytes.
	Size() (int64, error)

	// Sync returns once what was written is on disk.
	Sync() error
}

// Disk opens and removes files. What was done to a folder is on disk after SyncFolder.
type Disk interface {
	// Open opens a file, creating it if that is asked for. It fails with fs.ErrNotExist.
	Open(path string, create bool) (File, error)

	// Attach gives access to a file that is open already.
	Attach(f *os.File) File

	Remove(path string) error
	SyncFolder(path string) error
}

// OS is the disk of the operating system.
type OS struct{}

var _ Disk = OS{}

// Open opens a file for reading and writing.
func (OS) Open(path string, create bool) (File, error) {
	flag := os.O_RDWR
	if create {
		flag |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Attach gives access to an open file. Syncing it syncs its size and whatever else there is to it, too:
// it is a file that grows.
func (OS) Attach(f *os.File) File { return attachedFile{osFile{f}} }

// Remove removes a file.
func (OS) Remove(path string) error { return os.Remove(path) }

// SyncFolder makes the creation and removal of files durable.
func (OS) SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Sync() error { return syncData(f.File) }

type attachedFile struct{ osFile }

func (f attachedFile) Sync() error { return f.File.Sync() }
