// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// TestWatchExpired deletes an object while the server cannot watch, and compacts the history with the deletion.
// kube-apiserver keeps no Events in its watch cache, so their watches expire with etcd's history.
func TestWatchExpired(t *testing.T) {
	t.Parallel()
	base, w := mirrortest.NewWiredCluster(t, devcluster.Options{})
	s := &testCluster{base}
	m := s.newMirror(t, "expired")
	m.Watch(t, "events", "events")
	path := func(name string) string { return "core/v1/events/expired/" + name + ".yaml" }
	apply := func(name, message string) {
		t.Helper()
		s.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Event
metadata: {name: %s, namespace: expired}
involvedObject: {kind: Namespace, name: expired, namespace: expired}
reason: Tested
message: %s
`, name, message))
	}
	apply("deleted", "before")
	apply("changed", "before")
	m.Holds(t, path("deleted"), "message: before\n")
	m.Holds(t, path("changed"), "message: before\n")
	m.Settled(t)

	w.Sever(true)
	s.Delete(t, "expired", "event/deleted")
	apply("changed", "after")
	apply("created", "after")
	s.ForgetHistory(t)
	w.Sever(false)

	m.Holds(t, path("created"), "message: after\n")
	m.Holds(t, path("changed"), "message: after\n")
	m.Lacks(t, path("deleted"))
	m.Intact(t)
	// The Event about the comparison is mirrored as well.
	log, err := m.Git(t.Context(), "log", "--format=%s", "main")
	isFound := func(subject string) bool {
		return strings.HasPrefix(subject, "[SEED] ") && strings.Contains(subject, "1 deleted")
	}
	if err != nil || !slices.ContainsFunc(strings.Split(log, "\n"), isFound) {
		t.Errorf("no [SEED] commit with the deletion: commits = %q (%v)", log, err)
	}
}
