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

// Step changes the state of a record.
type Step struct {
	To v1alpha1.SyncState
	// By is the authenticated user who requested it. Empty if no user did.
	By string
	// At is the time of the change.
	At time.Time
	// Failure is the cause of the state. It is required for Failed and Conflicted. ManualIntervention without one keeps the previous one.
	Failure *Failure
}

// Failure is the error of a record.
type Failure struct {
	// Reason is a code for programs.
	Reason string
	// Message is a sentence for users, without secrets.
	Message string
}

// Creation is the input of New.
type Creation struct {
	Namespace string
	// Spec identifies the record.
	Spec v1alpha1.SyncStatusSpec
	// DetectedAt is when the first of the changes was detected, or the request was made.
	DetectedAt time.Time
	// First is the initial state. First.By becomes the actor of the record.
	First Step
}

// New returns a new record. The caller adds its content: changes, authors and revision. Its name is the first of Names.
func New(b Creation) (*v1alpha1.SyncStatus, error) {
	if err := checkCreation(b); err != nil {
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

// Move returns a copy of the record after a step. It returns a *TransitionError for a transition that does not exist.
func Move(record *v1alpha1.SyncStatus, step Step) (*v1alpha1.SyncStatus, error) {
	if err := checkMove(record, step); err != nil {
		return nil, fmt.Errorf("moving SyncStatus %s/%s: %w", record.Namespace, record.Name, err)
	}
	moved := record.DeepCopy()
	enter(moved, step)
	return moved, nil
}

// Resume returns a copy of the record of an interrupted run for its next attempt.
func Resume(record *v1alpha1.SyncStatus) (*v1alpha1.SyncStatus, error) {
	if record.Status.State != v1alpha1.SyncStateInProgress {
		return nil, fmt.Errorf("resuming SyncStatus %s/%s: it is %s, and only what is %s can have been interrupted",
			record.Namespace, record.Name, record.Status.State, v1alpha1.SyncStateInProgress)
	}
	resumed := record.DeepCopy()
	resumed.Status.Attempts++
	clearAttempt(&resumed.Status)
	return resumed, nil
}

// Claim returns a copy of a pending record with a user as its actor, who requests what the server has created the record for. A record that
// already has an actor keeps it.
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

func checkCreation(b Creation) error {
	subject, err := subjectOf(b.Spec.Type)
	switch first := b.First.To; {
	case err != nil:
		return err
	case b.Spec.Subject.Kind != subject:
		return fmt.Errorf("the subject of type %s is an %s", b.Spec.Type, subject)
	case b.Spec.Subject.Name == "" || b.Spec.Subject.UID == "" || b.Spec.Batch == "":
		return errors.New("the name and the uid of the subject and the batch must be set")
	case !slices.Contains(InitialStates(b.Spec.Type), first):
		return fmt.Errorf("a record of type %s cannot begin as %s, only as %s", b.Spec.Type, first, join(InitialStates(b.Spec.Type)))
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
	switch states[of][from].next[step.To] {
	case byUser:
		if step.By == "" {
			return fmt.Errorf("from %s to %s needs the user who asks for it", from, step.To)
		}
	case asCreated:
		if automatic := step.To == v1alpha1.SyncStateAutoApplied; automatic != record.Status.AutoTriggered {
			return fmt.Errorf("%s is for what begins by itself and %s for what a user asks for: this record began as the other",
				v1alpha1.SyncStateAutoApplied, v1alpha1.SyncStateApplied)
		}
	case byAnyone:
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

// enter sets the new state of a record, and the fields that change with it.
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
		clearAttempt(status)
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

// clearAttempt clears the fields that are about the last attempt only.
func clearAttempt(status *v1alpha1.SyncRecord) {
	status.Progress, status.Failures, status.Warnings = nil, nil, nil
}

// subjectOf returns the kind of the subjects of a type of records.
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

// seconds returns a time in the resolution in which the API stores it.
func seconds(at time.Time) metav1.Time {
	return metav1.NewTime(at).Rfc3339Copy()
}
