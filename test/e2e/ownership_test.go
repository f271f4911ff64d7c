// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const foreignOwner = "clusterUID: elsewhere\nnamespace: theirs\nname: other\n"

func ownership(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "owned", "exclusiveMode: true", "suspend: true")
	clone := filepath.Join(t.TempDir(), "clone")
	git := func(script string) {
		t.Helper()
		script = fmt.Sprintf("set -e; git -C %[1]s pull -q origin main 2>/dev/null || true; cd %[1]s; %[2]s", clone, script)
		if out, err := shell(t.Context(), script); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	url := s.Env(devcluster.EnvGitURL) + "/owned.git"
	if out, err := shell(t.Context(), fmt.Sprintf("git init -q -b main %[1]s && cd %[1]s && git remote add origin %[2]s && git config "+
		"user.name J && git config user.email j@example.com", clone, url)); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	marker := filepath.Join(clone, m.Folder, mirrortest.MarkerPath)
	if err := os.MkdirAll(filepath.Dir(marker), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(marker, []byte(foreignOwner), 0o600); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(clone, m.Folder, m.ConfigMapPath("old"))
	if err := os.MkdirAll(filepath.Dir(old), 0o750); err != nil {
		t.Fatal(err)
	}
	const object = "apiVersion: v1\ndata:\n  a: before\nkind: ConfigMap\nmetadata:\n  name: old\n  namespace: owned\n"
	if err := os.WriteFile(old, []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	git("git add -A; git commit -qm mark; git tag before; git push -q origin HEAD:main")

	s.ConfigMap(t, "owned", "web", "a: '1'")
	s.Patch(t, "owned", "gd/main", `{"spec":{"suspend":false}}`)
	s.HaveCondition(t, "owned", "OwnershipConflict", "gd/main")
	m.applyRule(t)
	s.Condition(t, "owned", "gitdestination/main", "Ready", "OwnedByAnother")
	s.HasField(t, "owned", "gds/main", "{.status.owner.clusterUID}", "elsewhere")
	if files, err := m.Files(t.Context()); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}

	git("git rm -q " + filepath.Join(m.Folder, mirrortest.MarkerPath) + "; git commit -qm 'hand over'; git push -q origin HEAD:main")
	if out, err := m.compare(t.Context(), s.Administrator, "", ""); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	m.Holds(t, m.ConfigMapPath("web"), "a: \"1\"\n")
	m.Holds(t, mirrortest.MarkerPath, "namespace: owned\n")
	s.HasField(t, "owned", "gd/main", `{.status.conditions[?(@.type=="OwnershipConflict")].status}`, "False")
	// What the other owner has written cannot be read: it may be of another cluster.
	before, err := shell(t.Context(), "git -C "+clone+" rev-parse before")
	if err != nil {
		t.Fatal(err)
	}
	objects := "/apis/configbutler.ai/v1alpha1/namespaces/owned/gitdestinations/main/objects?resource=configmaps&namespace=owned&at="
	out, err := s.Administrator.Run(t.Context(), "get", "--raw", objects+strings.TrimSpace(before))
	if err == nil || !strings.Contains(err.Error(), "the destination did not own its folder") || !strings.Contains(err.Error(), "available are the states from") {
		t.Errorf("objects before the folder was handed over: %s (%v)", out, err)
	}
	metrics, err := s.ReadServer(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"slipstream_marker_conflicts_total 1", "slipstream_ownership_conflicts_total 1"} {
		if !strings.Contains(metrics, name) {
			t.Errorf("metrics lack %s", name)
		}
	}
	git("true")
	// The marker is not an object, but the folder can still be applied with kubectl.
	s.Run(t, "apply", "-R", "-f", filepath.Join(clone, m.Folder))
}

// applyRule creates the rule without waiting until it is ready.
func (m *mirror) applyRule(t *testing.T) {
	t.Helper()
	m.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: all, namespace: %s}
spec: {destinationRef: {name: main}, rules: [{name: all, resources: [configmaps]}]}
`, m.Namespace))
}
