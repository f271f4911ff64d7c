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

	"github.com/configbutler/slipstream/pkg/store/durable"
)

// maxFileBytes is the size above which another file is started in the same month.
const maxFileBytes = 64 << 20

// fileArchive is an archive in a folder of files.
type fileArchive struct {
	folder string
	// name, file and size are those of the newest file. file is nil if there is none.
	name fileName
	file *os.File
	size int64
	// lastBatch has the records of the batch that was the last one when the archive was opened, and maybe some earlier ones.
	lastBatch sets.Set[version]
}

// openFiles creates the folder if it does not exist, and recovers the last batch of an interrupted process.
func openFiles(folder string) (*fileArchive, error) {
	if err := createFolder(folder); err != nil {
		return nil, err
	}
	// The name of a file that was created may not be on disk yet.
	if err := durable.SyncDir(folder); err != nil {
		return nil, err
	}
	a := &fileArchive{folder: folder, lastBatch: sets.New[version]()}
	newest, found, err := newestFile(folder)
	if err != nil || !found {
		return a, err
	}
	a.name = newest
	if a.file, err = os.OpenFile(a.path(), os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if err := a.recoverLast(); err != nil {
		return nil, fmt.Errorf("%s: %w", a.path(), errors.Join(err, a.close()))
	}
	return a, nil
}

func createFolder(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return durable.SyncDir(filepath.Dir(folder))
}

func (a *fileArchive) path() string { return filepath.Join(a.folder, a.name.String()) }

func (a *fileArchive) close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

func (a *fileArchive) contains(record version) bool { return a.lastBatch.Has(record) }

// confirm does nothing, because recoverLast has made the batch durable.
func (*fileArchive) confirm(context.Context) (archived int, err error) { return 0, nil }

func (*fileArchive) maxBatchBytes() int { return batchBytes }

// append writes a batch. The batch is on disk once append returns nil. After an error no part of it is, unless truncating the file fails
// as well.
func (a *fileArchive) append(_ context.Context, now time.Time, batch []line) error {
	text := encode(batch)
	if err := a.rotate(now, len(text)); err != nil {
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

// rotate starts another file at the start of a month, and when the file is full. It does not if the clock was set back, so the last batch
// is always in the newest file.
func (a *fileArchive) rotate(now time.Time, more int) error {
	month := now.UTC().Format(monthFormat)
	next := a.name
	switch {
	case a.file == nil || month > a.name.month:
		next = fileName{month: month, number: 1}
	case a.size > 0 && a.size+int64(more) > maxFileBytes:
		next.number++
	default:
		return nil
	}
	file, err := os.OpenFile(filepath.Join(a.folder, next.String()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(durable.SyncDir(a.folder), a.close())
	a.name, a.file, a.size = next, file, 0
	return err
}
