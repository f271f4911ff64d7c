// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refusedPushes has a hook that refuses what a remote that answers and knows the credentials is sent: the repository must
// not be called ready then.
func refusedPushes(t *testing.T, s *stage) {
	m := s.newMirror(t, "refused")
	m.watch(t, "config", "configmaps")
	s.kubectl(t, "create", "configmap", "web", "-n", m.namespace, "--from-literal=color=red")
	m.holds(t, m.configMapPath("web"), "color: red\n")
	s.ready(t, "-n", m.namespace, "gitrepoconfig/main")

	hook := filepath.Join(m.repository, "hooks", "pre-receive")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho 'frozen until Monday' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "patch", "configmap", "web", "-n", m.namespace, "-p", `{"data":{"color":"blue"}}`)
	const condition = `jsonpath={.status.conditions[?(@.type=="Ready")].`
	for _, object := range []string{"gitrepoconfig/main", "gitdestination/main"} {
		s.kubectl(t, "wait", "-n", m.namespace, object, "--for="+condition+"reason}=PushRejected", "--timeout=60s")
		if message := s.kubectl(t, "get", "-n", m.namespace, object, "-o", condition+"message}"); !strings.Contains(message, "frozen until Monday") {
			t.Errorf("%s: message %q", object, message)
		}
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	m.holds(t, m.configMapPath("web"), "color: blue\n")
	s.ready(t, "-n", m.namespace, "gitrepoconfig/main", "gitdestination/main")
}
