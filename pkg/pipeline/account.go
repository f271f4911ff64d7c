// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Bounds of what a status says of a sink, in bytes.
const (
	longestAnswer = 200
	longestError  = 1024
)

// account is what became of what a sink was sent.
type account struct {
	mu     sync.Mutex
	status v1alpha1.PipelineSinkStatus
	// resting says that the sink is not tried again by itself, busy that it has to finish something before it can be told more.
	resting, busy bool
}

func newAccount(sink string) *account {
	return &account{status: v1alpha1.PipelineSinkStatus{Name: sink}}
}

// restore takes over what the status of a pipeline tells.
func (a *account) restore(p *v1alpha1.SyncPipeline) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, told := range p.Status.Sinks {
		if told.Name == a.status.Name {
			a.status = *told.DeepCopy()
		}
	}
}

// current is what is to be shown, and whether the sink rests.
func (a *account) current() (status v1alpha1.PipelineSinkStatus, resting bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return *a.status.DeepCopy(), a.resting
}

// delivered notes that the sink took objects. What it said of others that it refused stays to be seen, if there are any.
func (a *account) delivered(items, refused int, answer string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered(answer)
	if last := a.status.LastError; last != nil && (refused == 0 || last.Reason != v1alpha1.ReasonDeliveryRejected) {
		a.status.LastError = nil
	}
	a.status.LastDeliveryTime, a.status.LastDeliveryItems = second(now), int64(items)
}

// rejected notes that the sink refused objects.
func (a *account) rejected(answer string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered(answer)
	a.status.LastError = &v1alpha1.SyncError{
		Reason: v1alpha1.ReasonDeliveryRejected, Message: summary.Cut(summary.Line(answer), longestError), At: *second(now),
	}
}

// answered notes that the sink is there. The caller holds mu.
func (a *account) answered(answer string) {
	a.status.LastAnswer = summary.Cut(summary.Line(answer), longestAnswer)
	a.status.Failures, a.status.NextAttemptTime, a.resting, a.busy = 0, nil, false, false
}

// isStuck says whether nobody knows when the sink takes something: whether it rests, or, which is enough when others wait, fails or is
// busy.
func (a *account) isStuck(othersWait bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.resting || othersWait && (a.status.Failures > 0 || a.busy)
}

// failed notes that the sink could not be told, and returns how often in a row it could not.
func (a *account) failed(why string, now time.Time) (failures int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Failures++
	a.status.LastError = &v1alpha1.SyncError{
		Reason: v1alpha1.ReasonDeliveryFailed, Message: summary.Cut(summary.Line(why), longestError), At: *second(now),
	}
	return int(a.status.Failures)
}

// waits notes when the sink is tried again; the zero time: not by itself.
func (a *account) waits(until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.NextAttemptTime, a.resting = nil, until.IsZero()
	if !a.resting {
		a.status.NextAttemptTime = second(until)
	}
}

// waitsFor notes what the sink has to finish before it can be told more.
func (a *account) waitsFor(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered(what)
	a.busy = true
}

// begins notes that the sink is tried now, and says whether it has failed before. One that has rested begins anew.
func (a *account) begins() (again bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	again = a.status.Failures > 0
	if a.resting {
		a.status.Failures = 0
	}
	a.status.NextAttemptTime, a.resting = nil, false
	return again
}

// renewed notes that the sink is another since its spec was edited: what failed before does not count.
func (a *account) renewed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Failures, a.status.NextAttemptTime, a.status.LastError, a.resting = 0, nil, nil, false
}

// second is a time as the API has it.
func second(at time.Time) *metav1.Time {
	t := metav1.NewTime(at).Rfc3339Copy()
	return &t
}
