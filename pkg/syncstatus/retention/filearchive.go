// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// mostInAFile is the size at which another file is begun in the same month.
const mostInAFile = 64 << 20

// fileArchive is a folder of files that records are appended to.
type fileArchive struct {
	folder string
	// name, file and size are those of the newest file; file is nil when there is none.
	name fileName
	file *os.File
	size int64
	// last are the records of the batch that was written last when the archive was opened, and maybe some before them.
	last sets.Set[version]
}

// openFiles makes the folder if need be, and puts right what an end of the process has left of a batch.
func openFiles(folder string) (*fileArchive, error) {
	if err := makeFolder(folder); err != nil {
		return nil, err
	}
	// A file may have been made whose name did not reach the disk.
	if err := syncFolder(folder); err != nil {
		return nil, err
	}
	a := &fileArchive{folder: folder, last: sets.New[version]()}
	newest, found, err := newestFile(folder)
	if err != nil || !found {
		return a, err
	}
	a.name = newest
	if a.file, err = os.OpenFile(a.path(), os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if err := a.resume(); err != nil {
		return nil, fmt.Errorf("%s: %w", a.path(), errors.Join(err, a.close()))
	}
	return a, nil
}

func makeFolder(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(filepath.Dir(folder))
}

func (a *fileArchive) path() string { return filepath.Join(a.folder, a.name.String()) }

func (a *fileArchive) close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

func (a *fileArchive) holds(record version) bool { return a.last.Has(record) }

// finish has nothing to do: resume has done it.
func (*fileArchive) finish(context.Context) (archived int, err error) { return 0, nil }

func (*fileArchive) room() int { return batchBytes }

// append writes a batch. It is on disk when append returns nil; otherwise, if the disk still obeys, nothing of it is.
func (a *fileArchive) append(_ context.Context, now time.Time, batch []line) error {
	text := textOf(batch)
	if err := a.turn(now, len(text)); err != nil {
		return err
	}
	_, err := a.file.WriteAt(text, a.size)
	if err == nil {
		err = a.file.Sync()
	}
	if err != nil {
		return errors.Join(err, a.file.Truncate(a.size))
	}
	a.size += int64(len(text))
	return nil
}

// turn begins another file when a month or a file is full. A clock that is put back does not: the last batch is always in
// the newest file.
func (a *fileArchive) turn(now time.Time, more int) error {
	month := now.UTC().Format(monthFormat)
	next := a.name
	switch {
	case a.file == nil || month > a.name.month:
		next = fileName{month: month, number: 1}
	case a.size > 0 && a.size+int64(more) > mostInAFile:
		next.number++
	default:
		return nil
	}
	file, err := os.OpenFile(filepath.Join(a.folder, next.String()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(syncFolder(a.folder), a.close())
	a.name, a.file, a.size = next, file, 0
	return err
}

// syncFolder writes the names in a folder to disk.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
