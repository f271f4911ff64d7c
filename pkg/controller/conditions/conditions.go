// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions sets the conditions of objects the way kubectl wait and kstatus read them.
//
// Ready is True once the object is as its spec asks for. While it is not, Reconciling says that the server continues without help, and
// Stalled that a user has to change something. Conditions that report a problem, such as Conflicted, are True while it exists.
package conditions

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// Reason is why a condition has its status: a code for programs and a sentence for users. The zero value means that there is nothing
// to report.
type Reason struct{ Code, Message string }

// IsZero reports whether there is nothing to report.
func (r Reason) IsZero() bool { return r.Code == "" }

// Reasonf returns a Reason with a formatted message.
func Reasonf(code, format string, args ...any) Reason {
	return Reason{code, fmt.Sprintf(format, args...)}
}

// Progressing is the Reason of what continues without help.
func Progressing(message string) Reason { return Reason{v1alpha1.ReasonProgressing, message} }

// Setter sets the conditions of one object.
type Setter struct {
	conditions *[]metav1.Condition
	generation int64
	now        time.Time
	set        []string
}

// For returns a Setter of conditions that are about a generation of the object's spec. A condition that changes its status does so at
// now.
func For(conditions *[]metav1.Condition, generation int64, now time.Time) *Setter {
	return &Setter{conditions: conditions, generation: generation, now: now}
}

// Set sets a condition. Messages are cut at the limit of the API, and invisible characters in them are escaped.
func (s *Setter) Set(kind string, status metav1.ConditionStatus, reason Reason) {
	meta.SetStatusCondition(s.conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason.Code, Message: printable.Message(reason.Message),
		ObservedGeneration: s.generation, LastTransitionTime: metav1.NewTime(s.now).Rfc3339Copy(),
	})
	s.set = append(s.set, kind)
}

// Problem sets a condition that is True while there is a problem, and False with the reason none while there is not.
func (s *Setter) Problem(kind string, problem, none Reason) {
	if problem.IsZero() {
		s.Set(kind, metav1.ConditionFalse, none)
		return
	}
	s.Set(kind, metav1.ConditionTrue, problem)
}

// Good sets a condition that is True with the reason fine unless there is a problem.
func (s *Setter) Good(kind string, problem, fine Reason) {
	if problem.IsZero() {
		s.Set(kind, metav1.ConditionTrue, fine)
		return
	}
	s.Set(kind, metav1.ConditionFalse, problem)
}

// While has a condition exist, with the status True, only while present.
func (s *Setter) While(present bool, kind string, reason Reason) {
	if present {
		s.Set(kind, metav1.ConditionTrue, reason)
		return
	}
	meta.RemoveStatusCondition(s.conditions, kind)
}

// Ready sets Ready, which is True with fine unless there is a problem, and while there is one Reconciling or Stalled. cause is the code
// that decides which of the two: that of problem, or that of the object to which problem refers. Progressing means Reconciling; for any
// other code, stalled reports whether a user must change something.
func (s *Setter) Ready(problem, fine Reason, cause string, stalled bool) {
	s.Good(v1alpha1.ConditionReady, problem, fine)
	reconciling := cause == v1alpha1.ReasonProgressing
	s.While(!problem.IsZero() && reconciling, v1alpha1.ConditionReconciling, problem)
	s.While(!problem.IsZero() && !reconciling && stalled, v1alpha1.ConditionStalled, problem)
}

// Keep leaves a condition as it is, so that Prune does not remove it.
func (s *Setter) Keep(kind string) { s.set = append(s.set, kind) }

// Prune removes the conditions of the given types that were neither set nor kept.
func (s *Setter) Prune(kinds ...string) {
	*s.conditions = slices.DeleteFunc(*s.conditions, func(c metav1.Condition) bool {
		return slices.Contains(kinds, c.Type) && !slices.Contains(s.set, c.Type)
	})
}
