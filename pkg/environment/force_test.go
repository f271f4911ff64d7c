// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
)

// TestForceTakesUpWhatHasFailed checks that a forced request takes over objects that an automatic sync could not take
// over.
func TestForceTakesUpWhatHasFailed(t *testing.T) {
	s := newFixture(t, automatic)
	s.start(0)
	s.applied(1)
	s.produce("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: debug}}")
	mine := s.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: mine}}")
	mine.SetNamespace(environmenttest.Target)
	s.cluster.Put(mine)
	s.prompt("batch")
	state := func() v1alpha1.SyncState {
		for _, record := range s.syncStatuses() {
			if record.Spec.Batch == "batch" {
				return record.Status.State
			}
		}
		return ""
	}
	s.reaches("failure", func(*v1alpha1.Environment) bool { return state() == v1alpha1.SyncStateManualIntervention })
	if s.level() != "mine" {
		t.Fatalf("level = %s before the forced request", s.level())
	}
	s.ask("one", "joe", v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster, Force: true})
	s.reaches("the end", func(*v1alpha1.Environment) bool { return state() == v1alpha1.SyncStateCompleted })
	if s.level() != "debug" {
		t.Errorf("level = %s, want debug", s.level())
	}
}
