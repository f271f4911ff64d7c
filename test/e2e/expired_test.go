// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/mirrortest"
)

// TestWatchExpired has an object deleted, and the history that would tell of it compacted, while the server cannot watch.
// kube-apiserver keeps no Events in memory, so that their watches are as old as etcd's history.
func TestWatchExpired(t *testing.T) {
	base, w := mirrortest.NewWiredStage(t, devcluster.Options{})
	s := &stage{base}
	m := s.newMirror(t, "expired")
	m.Watch(t, "events", "events")
	path := func(name string) string { return "core/v1/events/expired/" + name + ".yaml" }
	say := func(name, message string) {
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
	say("goes", "before")
	say("stays", "before")
	m.Holds(t, path("goes"), "message: before\n")
	m.Holds(t, path("stays"), "message: before\n")
	m.Settled(t)

	w.Sever(true)
	s.Run(t, "delete", "event", "goes", "-n", "expired")
	say("stays", "after")
	say("comes", "after")
	s.ForgetHistory(t)
	w.Sever(false)

	m.Holds(t, path("comes"), "message: after\n")
	m.Holds(t, path("stays"), "message: after\n")
	m.Lacks(t, path("goes"))
	m.Intact(t)
	// The Event that tells of the comparison is mirrored as well.
	log, err := m.Git(t.Context(), "log", "--format=%s", "main")
	isFound := func(subject string) bool {
		return strings.HasPrefix(subject, "[SEED] ") && strings.Contains(subject, "1 deleted")
	}
	if err != nil || !slices.ContainsFunc(strings.Split(log, "\n"), isFound) {
		t.Errorf("no comparison has found it: the commits are %q (%v)", log, err)
	}
}
