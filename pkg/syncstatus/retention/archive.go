// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// archive is where records are written before they are deleted, a batch at a time. All of a batch are deleted before the
// next is written. After an error it must be opened anew.
type archive interface {
	// holds says whether a record is in the batch that was written last when the archive was opened. It may be in one before.
	holds(record version) bool
	// finish sees to it that this batch is in the archive for certain. It returns how many records are now that were not
	// known to be.
	finish(ctx context.Context) (archived int, err error)
	// append writes a batch, which is in the archive for certain when append returns nil.
	append(ctx context.Context, now time.Time, batch []line) error
	// room is how much is written at once, unless a single record has more.
	room() int
	close() error
}

// open opens the archive that a policy asks for, nil for none.
func (s *Sweeper) open(ctx context.Context, to *v1alpha1.Archive) (archive, error) {
	switch {
	case to == nil:
		return nil, nil
	case to.Type == v1alpha1.ArchiveGitDestination && to.DestinationRef != nil:
		return s.openGit(ctx, *to.DestinationRef)
	case to.Type != v1alpha1.ArchiveFile:
		return nil, fmt.Errorf("spec.retention.archive.type of the SyncPolicy is %s, in which this server cannot archive", to.Type)
	case s.Folder == "":
		return nil, errors.New("spec.retention.archive of the SyncPolicy wants files, and this server has no folder for them: it was started without --archive-dir")
	}
	return openFiles(s.Folder)
}

// textOf is a batch as it is written.
func textOf(batch []line) []byte {
	var text []byte
	for _, line := range batch {
		text = append(text, line.text...)
	}
	return text
}
