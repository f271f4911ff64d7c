// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/apierror"
)

// outcome collects the report of a run. Tasks add to it concurrently, and it is read while none is executed.
type outcome struct {
	// progress is called after each written step with the total number of steps. It can be nil.
	progress Progress
	total    int

	// mu guards the report.
	mu     sync.Mutex
	report Report
}

// record adds the outcome of a task to the report. It returns errors that are neither refusals nor conflicts.
func (o *outcome) record(t *task, err error) error {
	var changed *changedError
	switch refusals := t.refusals(err); {
	case err == nil:
		return nil
	case errors.As(err, &changed):
		o.mu.Lock()
		defer o.mu.Unlock()
		o.report.Conflicts = append(o.report.Conflicts, Conflict{t.object, changed.message, t.index})
		return nil
	case len(refusals) > 0:
		o.refuse(refusals...)
		return nil
	}
	if t.object.isSecret() {
		return apierror.RedactSecret(err)
	}
	return err
}

func (o *outcome) refuse(refusals ...Refusal) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.report.Refusals = append(o.report.Refusals, refusals...)
}

// addWritten adds an executed step. object is the object after it, nil if it was deleted.
func (o *outcome) addWritten(t *task, object *unstructured.Unstructured) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.report.Written = append(o.report.Written, Written{t.index, object})
	if o.progress != nil {
		o.progress(len(o.report.Written), o.total)
	}
}

// sorted returns the report in the order of the steps.
func (o *outcome) sorted() Report {
	o.report.sort()
	return o.report
}
