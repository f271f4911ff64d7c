// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/retry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

var (
	// errOvertaken is returned if another process works on the record.
	errOvertaken = errors.New("another process works on the record")
	// errGone is returned if the record was deleted before the run began.
	errGone = errors.New("the record was deleted")
)

// jobRecord writes one record of a job.
type jobRecord struct {
	executor *Executor
	// record is the record as last written.
	record *v1alpha1.SyncStatus
	// target is the target namespace of the environment.
	target string
	begun  bool
	// earlier is what earlier attempts have written, or were about to write when they were interrupted.
	earlier []v1alpha1.ResourceSummary
	// planned is what the last plan is about to write; expected is the same for all plans of this attempt.
	planned, expected []v1alpha1.ResourceSummary
	// detected is set if the record lists changes of the source. It continues to list these.
	detected bool
}

// write changes the current record. If it was deleted after the run began, only the copy in memory is changed.
func (r *jobRecord) write(ctx context.Context, change func(*v1alpha1.SyncStatus) (*v1alpha1.SyncStatus, error)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, there, err := r.read(ctx)
		if err != nil {
			return err
		}
		if !there && !r.begun {
			return errGone
		}
		changed, err := change(now)
		if err != nil {
			return err
		}
		if there {
			if _, err := r.executor.Records.Write(ctx, changed); err != nil {
				return fmt.Errorf("write SyncStatus %s/%s: %w", changed.Namespace, changed.Name, err)
			}
		}
		r.record = changed
		return nil
	})
}

// read returns the current record, or the last known one if it was deleted.
func (r *jobRecord) read(ctx context.Context) (record *v1alpha1.SyncStatus, there bool, err error) {
	now, err := r.executor.SyncStatuses.SyncStatuses(r.record.Namespace).Get(ctx, r.record.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && now.UID != r.record.UID:
		return r.record.DeepCopy(), false, nil
	case err != nil:
		return nil, false, fmt.Errorf("read SyncStatus %s/%s: %w", r.record.Namespace, r.record.Name, err)
	case r.begun && (now.Status.State != r.record.Status.State || now.Status.Attempts != r.record.Status.Attempts):
		return nil, false, errOvertaken
	}
	return now, true, nil
}

// begin records that the run begins, if the state of the record still allows it.
func (r *jobRecord) begin(ctx context.Context, prepare func(*v1alpha1.SyncStatus)) error {
	begun := false
	err := r.write(ctx, func(record *v1alpha1.SyncStatus) (*v1alpha1.SyncStatus, error) {
		r.record = record
		next, err := r.next(record)
		if err != nil {
			return nil, err
		}
		if begun = next.Status.State == v1alpha1.SyncStateInProgress; begun {
			r.takeOver(record)
			prepare(next)
		}
		return next, nil
	})
	if refused := (*syncstatus.TransitionError)(nil); errors.As(err, &refused) || errors.Is(err, errGone) {
		return nil
	}
	r.begun = begun && err == nil
	return err
}

// takeOver remembers what the record lists before an attempt.
func (r *jobRecord) takeOver(record *v1alpha1.SyncStatus) {
	if record.Status.StartedAt != nil {
		r.earlier = record.Status.ResourceSummaries
	}
	r.detected = record.Spec.Type == v1alpha1.SyncTypeDependency &&
		slices.ContainsFunc(record.Status.ResourceSummaries, func(s v1alpha1.ResourceSummary) bool { return s.Namespace != r.target })
}

// next returns the record with the run begun, or Failed if all attempts were interrupted.
func (r *jobRecord) next(record *v1alpha1.SyncStatus) (*v1alpha1.SyncStatus, error) {
	status := &record.Status
	switch {
	case status.State != v1alpha1.SyncStateInProgress:
		return syncstatus.Move(record, syncstatus.Step{To: v1alpha1.SyncStateInProgress, At: r.executor.Clock.Now()})
	case status.Attempts >= *r.executor.Policy().Retry.MaxAttempts:
		return syncstatus.Move(record, syncstatus.Step{To: v1alpha1.SyncStateFailed, At: r.executor.Clock.Now(), Failure: &syncstatus.Failure{
			Reason:  v1alpha1.ReasonInterrupted,
			Message: fmt.Sprintf("the server stopped during attempt %d, which was the last", status.Attempts),
		}})
	}
	return syncstatus.Resume(record)
}

// expect records what is about to be written, in addition to what has been written.
func (r *jobRecord) expect(ctx context.Context, planned []v1alpha1.ResourceSummary) error {
	r.planned, r.expected = planned, slices.Concat(r.expected, planned)
	return r.write(ctx, func(record *v1alpha1.SyncStatus) (*v1alpha1.SyncStatus, error) {
		r.set(record, slices.Concat(r.earlier, r.expected))
		return record, nil
	})
}

// conclude sets the changes of a record to what this and earlier attempts have written, or to what a dry run would write.
func (r *jobRecord) conclude(record *v1alpha1.SyncStatus, mode Mode, result Result) {
	if mode == ModeDryRun {
		if result.Plan != nil {
			r.set(record, result.Plan.Summaries())
		}
		return
	}
	left := sets.New[v1alpha1.ResourceSummary]()
	for _, summary := range r.planned {
		left.Insert(object(summary))
	}
	written := slices.DeleteFunc(slices.Clone(r.earlier), func(s v1alpha1.ResourceSummary) bool { return left.Has(object(s)) })
	r.set(record, slices.Concat(written, result.Written))
}

// object returns the object of a summary.
func object(summary v1alpha1.ResourceSummary) v1alpha1.ResourceSummary {
	summary.ChangeType = ""
	return summary
}

// set sets the changes of a record, unless it lists changes of the source.
func (r *jobRecord) set(record *v1alpha1.SyncStatus, changes []v1alpha1.ResourceSummary) {
	if !r.detected {
		syncstatus.SetChanges(record, changes)
	}
}
