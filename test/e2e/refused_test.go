// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refusedPushes tests a remote that is reachable and accepts the credentials, but whose hook rejects pushes. The repository
// must not be ready then.
func refusedPushes(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "refused")
	m.Watch(t, "config", "configmaps")
	s.ConfigMap(t, m.Namespace, "web", "color: 'red'")
	m.Holds(t, m.ConfigMapPath("web"), "color: red\n")
	s.Ready(t, m.Namespace, "gitrepoconfig/main")

	hook := filepath.Join(m.Repository, "hooks", "pre-receive")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho 'frozen until Monday' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Patch(t, m.Namespace, "configmap/web", `{"data":{"color":"blue"}}`)
	for _, object := range []string{"gitrepoconfig/main", "gitdestination/main"} {
		if message := s.Condition(t, m.Namespace, object, "Ready", "PushRejected"); !strings.Contains(message, "frozen until Monday") {
			t.Errorf("%s: message %q", object, message)
		}
	}
	for _, object := range []string{"GitRepoConfig/main", "GitDestination/main"} {
		if message := s.event(t, m.Namespace, object, "Warning", "PushRejected"); !strings.Contains(message, "frozen until Monday") {
			t.Errorf("Event about %s: %q", object, message)
		}
	}
	if message := s.Condition(t, m.Namespace, "watchrule/config", "Ready", "DestinationNotReady"); !strings.Contains(message, "PushRejected") {
		t.Errorf("WatchRule: message %q", message)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	m.Holds(t, m.ConfigMapPath("web"), "color: blue\n")
	s.Ready(t, m.Namespace, "gitrepoconfig/main", "gitdestination/main", "watchrule/config")
	for _, object := range []string{"GitRepoConfig/main", "GitDestination/main"} {
		s.event(t, m.Namespace, object, "Normal", "Recovered")
	}
}
