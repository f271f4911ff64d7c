// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// testDestination has the remote refuse pushes, and then accept them.
func (s *testCluster) testDestination(t *testing.T) {
	m := s.NewMirror(t, "destination")
	m.Watch(t, "all", "configmaps")
	m.Settled(t)
	r := newInbox(t)
	s.sink(t, "destination", "chat", r.sink(), prompt, "events: [DestinationFailing, OwnershipConflict]")
	hook := filepath.Join(m.Repository, "hooks", "pre-receive")
	if err := os.MkdirAll(filepath.Dir(hook), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho frozen until Monday >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.ConfigMap(t, "destination", "web", "a: '1'")
	failing := r.gets(t, "DestinationFailing GitDestination main", severity(v1alpha1.SeverityError))
	if !strings.Contains(failing.Error, "frozen until Monday") {
		t.Errorf("error = %q", failing.Error)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	ended := r.gets(t, "DestinationFailing ended GitDestination main", severity(v1alpha1.SeverityInfo))
	if ended.DedupeKey != failing.DedupeKey {
		t.Errorf("key of the end = %q, of the failure %q", ended.DedupeKey, failing.DedupeKey)
	}
}

// testOwnershipConflict has a destination use the folder of another cluster's.
func (s *testCluster) testOwnershipConflict(t *testing.T) {
	r := newInbox(t)
	s.conflictingDestination(t, "owned")
	s.sink(t, "owned", "chat", r.sink(), prompt, "events: [DestinationFailing, OwnershipConflict]")
	r.gets(t, "OwnershipConflict GitDestination main", severity(v1alpha1.SeverityError))
	s.delivered(t, "owned", "chat", 1)
	r.expect(t, "OwnershipConflict GitDestination main")
}

// conflictingDestination creates a namespace with a destination whose folder is another cluster's.
func (s *testCluster) conflictingDestination(t *testing.T, namespace string) {
	t.Helper()
	m := s.NewMirror(t, namespace, "exclusiveMode: true", "suspend: true")
	clone := t.TempDir()
	marker := filepath.Join(clone, m.Folder, mirrortest.MarkerPath)
	if err := os.MkdirAll(filepath.Dir(marker), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(marker, []byte("clusterUID: elsewhere\nnamespace: theirs\nname: other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=J", "-c", "user.email=j@example.com", "commit", "-qm", "claim"},
		{"push", "-q", s.Env(devcluster.EnvGitURL) + "/" + namespace + ".git", "HEAD:main"},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", clone}, arguments...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", arguments, err, out)
		}
	}
	s.Patch(t, namespace, "gd/main", `{"spec":{"suspend":false}}`)
}

// testCatalog deletes the source of a catalog, and creates it again.
func (s *testCluster) testCatalog(t *testing.T) {
	c := s.newFixture(t, "sourceless")
	r := newInbox(t)
	s.sink(t, c.team, "chat", r.sink(), prompt, "events: [CatalogFailing]")
	s.Delete(t, "", "namespace/"+c.source)
	failing := r.gets(t, "CatalogFailing AppCatalog shop", severity(v1alpha1.SeverityError))
	if !strings.Contains(failing.Error, c.source) {
		t.Errorf("error = %q", failing.Error)
	}
	s.CreateNamespace(t, c.source)
	c.image(t, "shop/web:2")
	r.gets(t, "CatalogFailing ended AppCatalog shop")
}

// testPipeline has the receiver of a pipeline reject everything, and then accept it.
func (s *testCluster) testPipeline(t *testing.T) {
	r, index := newInbox(t), receivertest.New(t, v1alpha1.PipelineFormatClusterWhisperer)
	s.sink(t, devcluster.ServerNamespace, "pipelines", r.sink(), prompt, "events: [PipelineFailing]")
	index.Always(receivertest.Status(503))
	s.CreateNamespace(t, "piped")
	t.Cleanup(func() { s.DeleteIfExist(t, "", "pipe/piped") })
	s.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: piped}
spec:
  debounce: 0s
  batch: {maxWait: 0s}
  customResourceDefinitions: {enabled: false}
  instances: {resources: [configmaps]}
  sinks: [{name: index, retry: {backoff: 100ms, maxBackoff: 1s}, http: {url: %s, format: ClusterWhisperer}}]
`, index.URL))
	s.ConfigMap(t, "piped", "one", "a: '1'")
	r.gets(t, "PipelineFailing SyncPipeline piped", severity(v1alpha1.SeverityError))
	index.Always()
	r.gets(t, "PipelineFailing ended SyncPipeline piped")
}
