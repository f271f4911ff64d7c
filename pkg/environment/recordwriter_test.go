// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestRecordIsKeptAsWritten checks that a record that another client changes after a write is kept as it was written, so that the next
// write is a Conflict.
func TestRecordIsKeptAsWritten(t *testing.T) {
	s, situation := newFixture(t), quiet()
	s.api.AfterWrite(func(object runtime.Object) error {
		changed := object.DeepCopyObject().(*v1alpha1.SyncStatus)
		changed.ResourceVersion, changed.Status.State = "later", v1alpha1.SyncStateDismissed
		return s.api.Client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("syncstatuses"), changed, changed.Namespace)
	})
	w := &recordWriter{state: situation, api: s.api.Client.ConfigbutlerV1alpha1(), store: s.api}
	desired := desiredSync{of: catalogRun, batch: "a", detected: noon, action: v1alpha1.SyncActionAll, revision: 1}
	if err := w.ensure(t.Context(), desired); err != nil {
		t.Fatal(err)
	}
	if len(situation.records) != 1 {
		t.Fatalf("%d records, want 1", len(situation.records))
	}
	if got := situation.records[0]; got.ResourceVersion == "" || got.ResourceVersion == "later" || got.Status.State != pending {
		t.Errorf("version %q in the state %s, want what was written", got.ResourceVersion, got.Status.State)
	}
}
