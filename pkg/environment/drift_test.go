// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
)

// TestWorkloadsThatAreDeletedByHand checks that a workload that a user has deleted is offered again, and only written
// when a user requests it.
func TestWorkloadsThatAreDeletedByHand(t *testing.T) {
	s := newFixture(t)
	s.start(0)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	s.reaches("nothing to do", func(e *v1alpha1.Environment) bool { return e.Status.ChangedWorkloadCount == 0 })
	s.pass(60)

	s.cluster.Drop("deployments", environmenttest.Target, "worker")
	s.ready.deleted.Store(1)
	s.change(func(e *v1alpha1.Environment) { e.Annotations = map[string]string{"looked-at": "again"} })
	s.reaches("an offer", func(e *v1alpha1.Environment) bool {
		return e.Status.ChangedWorkloadCount == 1 && e.Status.ChangedWorkloads[0].Name == "worker"
	})
	s.has("web:1")
	s.ask("two", "jane", v1alpha1.SyncRequestSpec{})
	s.reaches("nothing to do again", func(e *v1alpha1.Environment) bool { return e.Status.ChangedWorkloadCount == 0 })
	s.has("web:1 worker:1")
}
