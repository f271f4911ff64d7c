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
	// batchRecords is the number of records that are archived and deleted between pauses.
	batchRecords = 100
	// batchBytes is the maximum size of a batch in a file, unless a single record is larger.
	batchBytes = 4 << 20
	// batchPause limits the load on the API. At less than a hundred records a second, 100 000 take half an hour.
	batchPause = time.Second
)

// removalCounts are the numbers of records that a sweep has deleted and archived.
type removalCounts struct {
	expired, archived int
	// finished is the start time of the sweep, if it was completed.
	finished time.Time
}

// archiveError is why records cannot be archived. A user has to change the SyncPolicy, or to free space.
type archiveError struct{ err error }

func (e *archiveError) Error() string { return "archiving records: " + e.err.Error() }

func (e *archiveError) Unwrap() error { return e.err }

// removal is the state of one removal of records.
type removal struct {
	sweeper *Sweeper
	// retention is the retention by which the records have expired.
	retention v1alpha1.Retention
	// archive is nil if records are deleted without an archive.
	archive archive
	counts  removalCounts
}

// remove archives and deletes expired records. Records that have changed since they were read are left to the next sweep.
func (s *Sweeper) remove(ctx context.Context, expired []version, retention v1alpha1.Retention) (removalCounts, error) {
	// Also without expired records, because the status of the SyncPolicy reports whether the archive is available.
	archive, err := s.open(ctx, retention.Archive)
	if err != nil {
		return removalCounts{}, &archiveError{err}
	}
	r := removal{sweeper: s, retention: retention, archive: archive}
	if archive == nil {
		err = r.forEachBatch(ctx, expired, r.deleteAll)
		return r.counts, err
	}
	err = errors.Join(r.archiveAndDelete(ctx, expired), archive.close())
	return r.counts, err
}

// archiveAndDelete first deletes the records that an interrupted sweep has archived, because a batch must be deleted before the next one is
// written.
func (r *removal) archiveAndDelete(ctx context.Context, expired []version) error {
	var archived, fresh []version
	for _, record := range expired {
		if r.archive.contains(record) {
			archived = append(archived, record)
		} else {
			fresh = append(fresh, record)
		}
	}
	if len(archived) > 0 {
		if err := r.confirmLast(ctx); err != nil {
			return err
		}
	}
	if err := r.forEachBatch(ctx, archived, r.deleteAll); err != nil {
		return err
	}
	return r.forEachBatch(ctx, fresh, func(ctx context.Context, batch []version) error {
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

// forEachBatch calls do for batches of the records, with pauses in between. It returns errChanged if the retention has changed, because a
// user may have configured an archive meanwhile, or a longer retention.
func (r *removal) forEachBatch(ctx context.Context, records []version, do func(context.Context, []version) error) error {
	for batch := range slices.Chunk(records, batchRecords) {
		current, err := r.sweeper.retention(ctx)
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
		case <-r.sweeper.process.Clock.After(batchPause):
		}
	}
	return nil
}

// read reads records until they fill a batch of the archive, without those that have changed. rest are the records that did not fit.
func (r *removal) read(ctx context.Context, batch []version) (lines []line, rest []version, err error) {
	size := 0
	for i, wanted := range batch {
		record, err := r.sweeper.process.Client.ConfigbutlerV1alpha1().SyncStatuses(wanted.namespace).Get(ctx, wanted.name, metav1.GetOptions{})
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
		if size += len(written.text); len(lines) > 0 && size > r.archive.maxBatchBytes() {
			return lines, batch[i:], nil
		}
		lines = append(lines, written)
	}
	return lines, nil, nil
}

// confirmLast makes sure that the archive has the batch of an interrupted sweep.
func (r *removal) confirmLast(ctx context.Context) error {
	archived, err := r.archive.confirm(ctx)
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
	if err := r.archive.append(ctx, r.sweeper.process.Clock.Now(), lines); err != nil {
		return &archiveError{err}
	}
	r.count(len(lines))
	return nil
}

// count counts archived records.
func (r *removal) count(archived int) {
	r.counts.archived += archived
	archivedTotal.Add(float64(archived))
}

// deleteAll deletes the records that have not changed.
func (r *removal) deleteAll(ctx context.Context, records []version) error {
	for _, record := range records {
		err := r.sweeper.process.Client.ConfigbutlerV1alpha1().SyncStatuses(record.namespace).Delete(ctx, record.name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &record.uid, ResourceVersion: &record.resourceVersion},
		})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("deleting SyncStatus %s/%s: %w", record.namespace, record.name, err)
		}
		r.counts.expired++
		expiredTotal.Inc()
	}
	return nil
}
