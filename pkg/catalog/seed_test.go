// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestIgnoredChangesAfterARestartHaveNoAuthor scales a workload before the first comparison after a restart, and then changes it. Only the
// user who changed it is an author.
func TestIgnoredChangesAfterARestartHaveNoAuthor(t *testing.T) {
	s := runningFixture(t)
	s.stop()
	s.start(0)
	s.waitForWatches()
	s.put("api", "shop/api:1", by("autoscaler"), with(int64(9), "spec", "replicas"))
	s.put("api", "shop/api:2", by("alice"))
	s.waitForEvents(1)
	s.waitForRevision("shop", 2)
	want := []v1alpha1.SourceAuthor{{Username: "alice", Signal: v1alpha1.SignalAudit, Workloads: 1}}
	if got := s.recordOf(2).Status.ChangedBy; !slices.Equal(got, want) {
		t.Errorf("changed by %+v, want %+v", got, want)
	}
}
