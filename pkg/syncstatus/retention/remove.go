// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// batchRecords is how many records are archived and deleted before the pause.
	batchRecords = 100
	// batchBytes is how much of a file is written at once, unless a single record has more.
	batchBytes = 4 << 20
	// batchPause leaves the API to others. At less than a hundred records a second, 100 000 take half an hour.
	batchPause = time.Second
)

// removed are the numbers of records that a sweep has removed.
type removed struct {
	expired, archived int
	// finished is the time of the sweep, if it came to its end.
	finished time.Time
}

// archiveError says why records cannot be archived. Somebody has to change the SyncPolicy, or to make room.
type archiveError struct{ err error }

func (e *archiveError) Error() string { return "archiving records: " + e.err.Error() }

func (e *archiveError) Unwrap() error { return e.err }

// removal is one removal of records.
type removal struct {
	*Sweeper
	// retention is why the records go.
	retention v1alpha1.Retention
	// archive is nil when records go for good.
	archive archive
	removed
}

// remove removes records. Those that have gone or changed since they were looked at are left to the next sweep.
func (s *Sweeper) remove(ctx context.Context, expired []version, retention v1alpha1.Retention) (removed, error) {
	archive, err := s.open(ctx, retention.Archive) // also for nothing: the SyncPolicy tells whether it can be
	if err != nil {
		return removed{}, &archiveError{err}
	}
	r := removal{Sweeper: s, retention: retention, archive: archive}
	if archive == nil {
		err = r.inBatches(ctx, expired, r.deleteAll)
		return r.removed, err
	}
	err = errors.Join(r.archiveAndDelete(ctx, expired), archive.close())
	return r.removed, err
}

// archiveAndDelete first deletes what an earlier sweep has archived and did not get to delete: nothing may be written
// behind a batch that is not deleted.
func (r *removal) archiveAndDelete(ctx context.Context, expired []version) error {
	var archived, fresh []version
	for _, record := range expired {
		if r.archive.holds(record) {
			archived = append(archived, record)
		} else {
			fresh = append(fresh, record)
		}
	}
	if len(archived) > 0 {
		if err := r.finishLast(ctx); err != nil {
			return err
		}
	}
	if err := r.inBatches(ctx, archived, r.deleteAll); err != nil {
		return err
	}
	return r.inBatches(ctx, fresh, func(ctx context.Context, batch []version) error {
		for len(batch) > 0 {
			lines, rest, err := r.read(ctx, batch)
			if err != nil {
				return err
			}
			if err := r.archiveLines(ctx, lines); err != nil {
				return err
			}
			if err := r.deleteAll(ctx, versionsOf(lines)); err != nil {
				return err
			}
			batch = rest
		}
		return nil
	})
}

// inBatches does something with all records, with pauses, as long as the retention stays as it is: somebody may have asked
// for an archive meanwhile, or for records to be kept longer.
func (r *removal) inBatches(ctx context.Context, records []version, do func(context.Context, []version) error) error {
	for batch := range slices.Chunk(records, batchRecords) {
		current, err := r.settings(ctx)
		if err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(current, r.retention) {
			return errChanged
		}
		if err := do(ctx, batch); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.Clock.After(batchPause):
		}
	}
	return nil
}

// read reads records, without those that are not as they were, until they fill a batch of the archive. The rest is what
// there was no room for.
func (r *removal) read(ctx context.Context, batch []version) (lines []line, rest []version, err error) {
	size := 0
	for i, wanted := range batch {
		record, err := r.Client.ConfigbutlerV1alpha1().SyncStatuses(wanted.namespace).Get(ctx, wanted.name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, nil, fmt.Errorf("reading SyncStatus %s/%s: %w", wanted.namespace, wanted.name, err)
		}
		if err != nil || versionOf(record) != wanted {
			continue
		}
		written, err := newLine(record)
		if err != nil {
			return nil, nil, err
		}
		if size += len(written.text); len(lines) > 0 && size > r.archive.room() {
			return lines, batch[i:], nil
		}
		lines = append(lines, written)
	}
	return lines, nil, nil
}

// finishLast makes certain that what an earlier sweep has written is in the archive.
func (r *removal) finishLast(ctx context.Context) error {
	archived, err := r.archive.finish(ctx)
	if err != nil {
		return &archiveError{err}
	}
	r.count(archived)
	return nil
}

func (r *removal) archiveLines(ctx context.Context, lines []line) error {
	if len(lines) == 0 {
		return nil
	}
	if err := r.archive.append(ctx, r.Clock.Now(), lines); err != nil {
		return &archiveError{err}
	}
	r.count(len(lines))
	return nil
}

// count takes note of records that have been archived.
func (r *removal) count(archived int) {
	r.archived += archived
	archivedTotal.Add(float64(archived))
}

// deleteAll deletes records that are as they were.
func (r *removal) deleteAll(ctx context.Context, records []version) error {
	for _, record := range records {
		err := r.Client.ConfigbutlerV1alpha1().SyncStatuses(record.namespace).Delete(ctx, record.name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &record.uid, ResourceVersion: &record.resourceVersion},
		})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("deleting SyncStatus %s/%s: %w", record.namespace, record.name, err)
		}
		r.expired++
		expiredTotal.Inc()
	}
	return nil
}
