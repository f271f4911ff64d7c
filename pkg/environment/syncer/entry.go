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
	// errOvertaken says that somebody else works on a record, who has taken over what this process did.
	errOvertaken = errors.New("another process has gone on with it")
	// errGone says that a record was deleted before work began.
	errGone = errors.New("it is deleted")
)

// entry is one of a job's records.
type entry struct {
	*Executor
	// record is as it was written last.
	record *v1alpha1.SyncStatus
	// target is the environment's namespace.
	target string
	begun  bool
	// earlier is what the attempts before this one have written, or died about to write.
	earlier []v1alpha1.ResourceSummary
	// planned is what the plan that was made last is about to write; expected, what all plans of this attempt were.
	planned, expected []v1alpha1.ResourceSummary
	// detected says that the record tells of what has changed in the source, which it goes on telling of.
	detected bool
}

// write changes the record as it is now. One that somebody has deleted since work began is changed here alone.
func (e *entry) write(ctx context.Context, change func(*v1alpha1.SyncStatus) (*v1alpha1.SyncStatus, error)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, there, err := e.read(ctx)
		if err != nil {
			return err
		}
		if !there && !e.begun {
			return errGone
		}
		changed, err := change(now)
		if err != nil {
			return err
		}
		if there {
			if err := e.Records.Write(ctx, changed); err != nil {
				return fmt.Errorf("write SyncStatus %s/%s: %w", changed.Namespace, changed.Name, err)
			}
		}
		e.record = changed
		return nil
	})
}

// read returns the record as it is now, or as it was if it is not there any more.
func (e *entry) read(ctx context.Context) (record *v1alpha1.SyncStatus, there bool, err error) {
	now, err := e.SyncStatuses.SyncStatuses(e.record.Namespace).Get(ctx, e.record.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && now.UID != e.record.UID:
		return e.record.DeepCopy(), false, nil
	case err != nil:
		return nil, false, fmt.Errorf("read SyncStatus %s/%s: %w", e.record.Namespace, e.record.Name, err)
	case e.begun && (now.Status.State != e.record.Status.State || now.Status.Attempts != e.record.Status.Attempts):
		return nil, false, errOvertaken
	}
	return now, true, nil
}

// begin has the record say that work begins, if it still may.
func (e *entry) begin(ctx context.Context, prepare func(*v1alpha1.SyncStatus)) error {
	begun := false
	err := e.write(ctx, func(record *v1alpha1.SyncStatus) (*v1alpha1.SyncStatus, error) {
		e.record = record
		next, err := e.next(record)
		if err != nil {
			return nil, err
		}
		if begun = next.Status.State == v1alpha1.SyncStateInProgress; begun {
			e.takeOver(record)
			prepare(next)
		}
		return next, nil
	})
	if refused := (*syncstatus.TransitionError)(nil); errors.As(err, &refused) || errors.Is(err, errGone) {
		return nil
	}
	e.begun = begun && err == nil
	return err
}

// takeOver takes up what a record tells of before an attempt.
func (e *entry) takeOver(record *v1alpha1.SyncStatus) {
	if record.Status.StartedAt != nil {
		e.earlier = record.Status.ResourceSummaries
	}
	e.detected = record.Spec.Type == v1alpha1.SyncTypeDependency &&
		slices.ContainsFunc(record.Status.ResourceSummaries, func(s v1alpha1.ResourceSummary) bool { return s.Namespace != e.target })
}

// next is a record as its work begins, or as Failed if it has died at every attempt.
func (e *entry) next(record *v1alpha1.SyncStatus) (*v1alpha1.SyncStatus, error) {
	status := &record.Status
	switch {
	case status.State != v1alpha1.SyncStateInProgress:
		return syncstatus.Move(record, syncstatus.Step{To: v1alpha1.SyncStateInProgress, At: e.Clock.Now()})
	case status.Attempts >= *e.Policy().Retry.MaxAttempts:
		return syncstatus.Move(record, syncstatus.Step{To: v1alpha1.SyncStateFailed, At: e.Clock.Now(), Failure: &syncstatus.Failure{
			Reason:  v1alpha1.ReasonInterrupted,
			Message: fmt.Sprintf("the server stopped during attempt %d, which was the last", status.Attempts),
		}})
	}
	return syncstatus.Resume(record)
}

// expect has the record say what is about to be written, besides what has been.
func (e *entry) expect(ctx context.Context, planned []v1alpha1.ResourceSummary) error {
	e.planned, e.expected = planned, slices.Concat(e.expected, planned)
	return e.write(ctx, func(record *v1alpha1.SyncStatus) (*v1alpha1.SyncStatus, error) {
		e.set(record, slices.Concat(e.earlier, e.expected))
		return record, nil
	})
}

// conclude has a record say what was written, in this attempt and in those before it; or would be, of which nothing was.
func (e *entry) conclude(record *v1alpha1.SyncStatus, mode Mode, result Result) {
	if mode == ModeDryRun {
		if result.Plan != nil {
			e.set(record, result.Plan.Summaries())
		}
		return
	}
	left := sets.New[v1alpha1.ResourceSummary]()
	for _, summary := range e.planned {
		left.Insert(object(summary))
	}
	written := slices.DeleteFunc(slices.Clone(e.earlier), func(s v1alpha1.ResourceSummary) bool { return left.Has(object(s)) })
	e.set(record, slices.Concat(written, result.Written))
}

// object is what a summary is about.
func object(summary v1alpha1.ResourceSummary) v1alpha1.ResourceSummary {
	summary.ChangeType = ""
	return summary
}

// set has a record tell of changes, unless it tells of those in the source that its run was to bring.
func (e *entry) set(record *v1alpha1.SyncStatus, changes []v1alpha1.ResourceSummary) {
	if !e.detected {
		syncstatus.SetChanges(record, changes)
	}
}
