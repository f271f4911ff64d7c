// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"syscall"
	"testing"
)

// testRestart restarts the server while a failure and a prompt last, of which sinks were notified: they are not notified again, nor is their end.
func (s *testCluster) testRestart(t *testing.T) {
	r := newInbox(t)
	s.conflictingDestination(t, "kept-conflict")
	s.sink(t, "kept-conflict", "chat", r.sink(), prompt, "events: [DestinationFailing, OwnershipConflict, Change]")
	s.mirrored(t, "kept")
	c := s.newFixture(t, "kept")
	c.environment(t, "alice", c.target)
	c.sync(t, "alice")
	s.sink(t, c.team, "chat", r.sink(), prompt, "events: [Prompted, Failed, Conflicted, Change, DestinationFailing]")
	c.image(t, "shop/web:2")
	r.gets(t, "Prompted Environment alice")
	r.gets(t, "OwnershipConflict GitDestination main")
	s.delivered(t, "kept-conflict", "chat", 1)
	s.delivered(t, c.team, "chat", 1)
	for _, name := range []string{"first", "second"} {
		s.restart(t, syscall.SIGTERM)
		s.ConfigMap(t, c.team, name, "a: '1'")
		r.gets(t, "Change ConfigMap "+name)
	}
	s.delivered(t, "kept-conflict", "chat", 1)
	r.expect(t, "Prompted Environment alice", "OwnershipConflict GitDestination main", "Change ConfigMap first", "Change ConfigMap second")
}
