// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Step brings a record to a state.
type Step struct {
	To v1alpha1.SyncState
	// By is the user who asked for it, as authenticated. Empty: the server does it by itself.
	By string
	// At is when it happens.
	At time.Time
	// Failure says what went wrong. Failed and Conflicted need one; ManualIntervention may have one and otherwise keeps
	// that of before.
	Failure *Failure
}

// Failure says what went wrong.
type Failure struct {
	// Reason is a word for programs.
	Reason string
	// Message is a sentence for people, without secrets.
	Message string
}

// Beginning is what is known of a record when it begins.
type Beginning struct {
	Namespace string
	// Spec tells the record from all others.
	Spec v1alpha1.SyncStatusSpec
	// DetectedAt is when the first of the changes was seen, or the request was made.
	DetectedAt time.Time
	// First is the state that the record begins with. By is its actor: a user who asked for what is recorded.
	First Step
}

// New returns a record that begins, without its content, which the caller adds: what changed, by whom, which revision.
// Its name is the first of Names.
func New(b Beginning) (*v1alpha1.SyncStatus, error) {
	if err := checkBeginning(b); err != nil {
		return nil, fmt.Errorf("beginning a SyncStatus of %s %s: %w", b.Spec.Subject.Kind, b.Spec.Subject.Name, err)
	}
	record := &v1alpha1.SyncStatus{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.Namespace, Name: Names(b.Spec)[0], Labels: Labels(b.Spec),
		},
		Spec: b.Spec,
		Status: v1alpha1.SyncRecord{
			Actor: b.First.By, AutoTriggered: b.First.By == "", DetectedAt: seconds(b.DetectedAt),
		},
	}
	enter(record, b.First)
	return record, nil
}

// Move returns the record after a step, and leaves the one that it is given as it is. A step that the record's state does
// not admit is refused with a *TransitionError.
func Move(record *v1alpha1.SyncStatus, step Step) (*v1alpha1.SyncStatus, error) {
	if err := checkMove(record, step); err != nil {
		return nil, fmt.Errorf("moving SyncStatus %s/%s: %w", record.Namespace, record.Name, err)
	}
	moved := record.DeepCopy()
	enter(moved, step)
	return moved, nil
}

// Resume returns a record of a run that died, as it is begun again: that is one more attempt.
func Resume(record *v1alpha1.SyncStatus) (*v1alpha1.SyncStatus, error) {
	if record.Status.State != v1alpha1.SyncStateInProgress {
		return nil, fmt.Errorf("resuming SyncStatus %s/%s: it is %s, and only what is %s can have been interrupted",
			record.Namespace, record.Name, record.Status.State, v1alpha1.SyncStateInProgress)
	}
	resumed := record.DeepCopy()
	resumed.Status.Attempts++
	forgetAttempt(&resumed.Status)
	return resumed, nil
}

// Claim returns a record that the server began by itself, and that waits, as the request of a user who asks for the same.
// Whose request it is already stays so.
func Claim(record *v1alpha1.SyncStatus, by string) (*v1alpha1.SyncStatus, error) {
	if state := record.Status.State; state != v1alpha1.SyncStatePending || by == "" {
		return nil, fmt.Errorf("claiming SyncStatus %s/%s: only a user can, and only what is %s; it is %s",
			record.Namespace, record.Name, v1alpha1.SyncStatePending, state)
	}
	claimed := record.DeepCopy()
	if claimed.Status.AutoTriggered {
		claimed.Status.Actor, claimed.Status.AutoTriggered = by, false
	}
	return claimed, nil
}

func checkBeginning(b Beginning) error {
	subject, err := subjectOf(b.Spec.Type)
	switch first := b.First.To; {
	case err != nil:
		return err
	case b.Spec.Subject.Kind != subject:
		return fmt.Errorf("the subject of type %s is an %s", b.Spec.Type, subject)
	case b.Spec.Subject.Name == "" || b.Spec.Subject.UID == "" || b.Spec.Batch == "":
		return errors.New("its subject needs a name and a uid, and what happened together a batch")
	case !slices.Contains(Firsts(b.Spec.Type), first):
		return fmt.Errorf("a record of type %s cannot begin as %s, only as %s", b.Spec.Type, first, join(Firsts(b.Spec.Type)))
	case first == v1alpha1.SyncStateAutoApplied && b.First.By != "":
		return fmt.Errorf("%s has no actor; what %s asked for is %s", first, b.First.By, v1alpha1.SyncStateApplied)
	case first == v1alpha1.SyncStateApplied && b.First.By == "":
		return fmt.Errorf("%s needs the user who asked for it", first)
	}
	return checkFailure(b.First)
}

func checkMove(record *v1alpha1.SyncStatus, step Step) error {
	of, from := record.Spec.Type, record.Status.State
	if err := CheckTransition(of, from, step.To); err != nil {
		return err
	}
	switch lives[of][from].next[step.To] {
	case aUser:
		if step.By == "" {
			return fmt.Errorf("from %s to %s needs the user who asks for it", from, step.To)
		}
	case asItBegan:
		if automatic := step.To == v1alpha1.SyncStateAutoApplied; automatic != record.Status.AutoTriggered {
			return fmt.Errorf("%s is for what begins by itself and %s for what a user asks for: this record began as the other",
				v1alpha1.SyncStateAutoApplied, v1alpha1.SyncStateApplied)
		}
	case anybody:
	}
	return checkFailure(step)
}

func checkFailure(step Step) error {
	switch step.To {
	case v1alpha1.SyncStateFailed, v1alpha1.SyncStateConflicted:
		if step.Failure == nil || step.Failure.Reason == "" || step.Failure.Message == "" {
			return fmt.Errorf("%s needs a reason and a message", step.To)
		}
	case v1alpha1.SyncStateManualIntervention:
	default:
		if step.Failure != nil {
			return fmt.Errorf("%s is no failure, but one is given: %s", step.To, step.Failure.Message)
		}
	}
	return nil
}

// enter gives a record its new state and what comes with it.
func enter(record *v1alpha1.SyncStatus, step Step) {
	status, at := &record.Status, seconds(step.At)
	status.State = step.To
	if status.StartedAt == nil && step.To != v1alpha1.SyncStatePending && !Ended(record) {
		status.StartedAt, status.Attempts = &at, 1
	}
	switch step.To {
	case v1alpha1.SyncStateRetrying:
		status.Attempts++
	case v1alpha1.SyncStateInProgress:
		forgetAttempt(status)
	case v1alpha1.SyncStateAutoApplied, v1alpha1.SyncStateApplied, v1alpha1.SyncStateCompleted:
		status.Error = nil
	default:
	}
	if failure := step.Failure; failure != nil {
		status.Error = &v1alpha1.SyncError{Reason: failure.Reason, Message: failure.Message, At: at}
	}
	if Ended(record) {
		status.ResolvedAt, status.ResolvedBy, status.RequestedBy = &at, step.By, nil
	}
}

// forgetAttempt takes out what is said of the last attempt alone.
func forgetAttempt(status *v1alpha1.SyncRecord) {
	status.Progress, status.Failures, status.Warnings = nil, nil, nil
}

// subjectOf is the kind of the subjects of a type of records.
func subjectOf(of v1alpha1.SyncType) (v1alpha1.SubjectKind, error) {
	switch of {
	case v1alpha1.SyncTypeCatalog:
		return v1alpha1.SubjectAppCatalog, nil
	case v1alpha1.SyncTypeEnvironment, v1alpha1.SyncTypeDependency:
		return v1alpha1.SubjectEnvironment, nil
	default:
		return "", fmt.Errorf("there is no type %q of records", of)
	}
}

// seconds is a time as it reads after it has been stored.
func seconds(at time.Time) metav1.Time {
	return metav1.NewTime(at).Rfc3339Copy()
}
