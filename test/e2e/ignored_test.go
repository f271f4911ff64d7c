// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// ignoredFields leaves the replicas of Deployments, and what a field manager owns, to others.
func ignoredFields(t *testing.T, s *stage) {
	m := s.newMirror(t, "ignored", "ignore: [{target: {group: apps, kind: Deployment}, fields: [/spec/replicas]}, {managers: [injector]}]")
	m.Watch(t, "workloads", "deployments.apps", "configmaps")
	s.Run(t, "create", "deployment", "web", "-n", "ignored", "--image=example.com/web:1", "--replicas=1")
	path := "apps/v1/deployments/ignored/web.yaml"
	m.Holds(t, path, "image: example.com/web:1\n")
	m.Settled(t)

	s.Run(t, "scale", "deployment", "web", "-n", "ignored", "--replicas=7")
	s.Run(t, "annotate", "deployment", "web", "-n", "ignored", "--field-manager=injector", "example.com/injected=yes")
	// The commit of a change that counts proves that those before it have been dealt with.
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
		t.Errorf("history of the file: %q, %v; want %q", history, err, want)
	}
	// What counts again is written, in one commit for all that it concerns.
	s.Run(t, "patch", "gd", "main", "-n", "ignored", "--type=json", "-p", `[{"op":"remove","path":"/spec/ignore"}]`)
	m.Holds(t, path, "replicas: 7\n")
	m.Holds(t, path, "example.com/injected: \"yes\"\n")
	m.Intact(t)
}
