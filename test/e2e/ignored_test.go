// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// ignoredFields tests a destination that ignores the replicas of Deployments and the fields of a field manager.
func ignoredFields(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "ignored", "ignore: [{target: {group: apps, kind: Deployment}, fields: [/spec/replicas]}, {managers: [injector]}]")
	m.Watch(t, "workloads", "deployments.apps", "configmaps")
	s.Run(t, "create", "deployment", "web", "-n", "ignored", "--image=example.com/web:1", "--replicas=1")
	path := "apps/v1/deployments/ignored/web.yaml"
	m.Holds(t, path, "image: example.com/web:1\n")
	m.Settled(t)

	s.Run(t, "scale", "deployment", "web", "-n", "ignored", "--replicas=7")
	s.Run(t, "annotate", "deployment", "web", "-n", "ignored", "--field-manager=injector", "example.com/injected=yes")
	// The commit of a later change proves that the earlier changes have been processed.
	s.Run(t, "create", "configmap", "after", "-n", "ignored", "--from-literal=a=1")
	m.Holds(t, m.ConfigMapPath("after"), "a: \"1\"\n")
	s.Run(t, "set", "image", "deployment/web", "-n", "ignored", "web=example.com/web:2")
	m.Holds(t, path, "image: example.com/web:2\n")
	content, err := m.Git(t.Context(), "show", "main:"+m.Folder+"/"+path)
	if err != nil {
		t.Fatal(err)
	}
	for _, unwanted := range []string{"replicas:", "injected"} {
		if strings.Contains(content, unwanted) {
			t.Errorf("%q is mirrored:\n%s", unwanted, content)
		}
	}
	history, err := m.Git(t.Context(), "log", "--format=%s", "main", "--", m.Folder+"/"+path)
	if want := "[UPDATE] apps/v1/deployments ignored/web\n[CREATE] apps/v1/deployments ignored/web\n"; err != nil || history != want {
		t.Errorf("commits of the file: %q, %v; want %q", history, err, want)
	}
	// Fields that are no longer ignored are written in one commit.
	s.Run(t, "patch", "gd", "main", "-n", "ignored", "--type=json", "-p", `[{"op":"remove","path":"/spec/ignore"}]`)
	m.Holds(t, path, "replicas: 7\n")
	m.Holds(t, path, "example.com/injected: \"yes\"\n")
	m.Intact(t)
}
