// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
)

// TestRefreshAfterManualIntervention checks that a refresh in the state ManualIntervention is retried when a user
// requests another one.
func TestRefreshAfterManualIntervention(t *testing.T) {
	s := newFixture(t)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.start(0)
	s.applied(1)
	s.cluster.Drop("configmaps", environmenttest.Production, "settings")
	s.pass(2)
	s.prompt("batch")
	s.reaches("the prompt", func(e *v1alpha1.Environment) bool { return e.Status.LatestDependencySync != "" })
	s.ask("two", "jane", v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster})
	s.expectRecords("Environment one Completed by jane r1", "Dependency batch ManualIntervention by jane")
	answered := func(e *v1alpha1.Environment) bool { return len(e.Status.PendingRequests) == 0 }
	s.reaches("the refresh is given up", answered)
	s.produce(configMap)
	s.ask("three", "joe", v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster})
	s.reaches("the refresh is answered", answered)
	s.expectRecords("Environment one Completed by jane r1", "Dependency batch Completed by jane")
}
