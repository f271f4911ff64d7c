// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func TestSyncThatIsAskedFor(t *testing.T) {
	s := newStage(t)
	s.start(0)
	s.reaches("the offer", func(e *v1alpha1.Environment) bool {
		return e.Status.LatestRevision == 1 && e.Status.ChangedWorkloadCount == 2
	})
	s.tells()
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	s.tells("Environment one Completed by jane r1")
	if got := s.images(); got != "web:1 worker:1" {
		t.Errorf("images %s", got)
	}
	s.offer(2, image(web, "2"), worker)
	s.reaches("the next offer", func(e *v1alpha1.Environment) bool {
		return e.Status.LatestRevision == 2 && e.Status.ChangedWorkloadCount == 1
	})
}

func TestSyncByItself(t *testing.T) {
	s := newStage(t, func(e *v1alpha1.Environment) { e.Spec.AutoSync = true })
	s.start(0)
	s.applied(1)
	s.offer(2, image(web, "2"), worker)
	s.applied(2)
	s.tells("Environment auto.shop-r1.1 Completed r1", "Environment auto.shop-r2.1 Completed r2")
	if got := s.images(); got != "web:2 worker:1" {
		t.Errorf("images %s", got)
	}
}
