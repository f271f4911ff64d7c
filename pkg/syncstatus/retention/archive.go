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

// archive stores records before they are deleted, one batch at a time. All records of a batch are deleted before the next batch is written.
// After an error the archive must be opened again.
type archive interface {
	// contains reports whether a record is in the batch that was the last one when the archive was opened. Records of earlier batches
	// may be reported as well.
	contains(record version) bool
	// confirm makes sure that this batch is durably stored. It returns the number of records that were not known to be.
	confirm(ctx context.Context) (archived int, err error)
	// append writes a batch. The batch is durably stored once append returns nil.
	append(ctx context.Context, now time.Time, batch []line) error
	// maxBatchBytes is the maximum size of a batch, unless a single record is larger.
	maxBatchBytes() int
	close() error
}

// open opens the archive of a policy, nil if it has none.
func (s *Sweeper) open(ctx context.Context, to *v1alpha1.Archive) (archive, error) {
	switch {
	case to == nil:
		return nil, nil
	case to.Type == v1alpha1.ArchiveGitDestination && to.DestinationRef != nil:
		return s.openGit(ctx, *to.DestinationRef)
	case to.Type != v1alpha1.ArchiveFile:
		return nil, fmt.Errorf("spec.retention.archive.type of the SyncPolicy is %s, in which this server cannot archive", to.Type)
	case s.config.Folder == "":
		return nil, errors.New("spec.retention.archive of the SyncPolicy wants files, " +
			"and this server has no folder for them: it was started without --archive-dir")
	}
	return openFiles(s.config.Folder)
}

// encode returns a batch in the format of the archive.
func encode(batch []line) []byte {
	var text []byte
	for _, line := range batch {
		text = append(text, line.text...)
	}
	return text
}
